package cgrouptest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// switcher is a helper that says how long a switch between two of its threads takes.
const switcher = "switch"

// PingPong starts two threads in the group that switch to and fro on CPU 0. What it returns asks them how long a switch
// takes, when each thread walks over so many bytes of memory first.
func (g *Group) PingPong() func(walk int) time.Duration {
	g.t.Helper()
	cmd, lines, in := Dialogue(g.t, switcher)
	g.Move(cmd.Process.Pid)
	return func(walk int) time.Duration {
		g.t.Helper()
		fmt.Fprintln(in, walk)
		lines.Scan()
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			g.t.Fatal(err)
		}
		return time.Duration(n)
	}
}

// Median is the upper one of a list's middle.
func Median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// switches answers each line, which is how far to walk.
func switches() {
	const most, line = 50_000, 64
	var there, back [2]int
	if err := errors.Join(unix.Pipe(there[:]), unix.Pipe(back[:])); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go bounce(there[0], back[1])
	Stay(0)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		walk, err := strconv.Atoi(lines.Text())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		memory, trips := make([]byte, walk), most
		if walk > 0 {
			trips = most / 50
		}
		var b [1]byte
		begin := time.Now()
		for range trips {
			for i := 0; i < walk; i += line {
				memory[i]++
			}
			_, _ = unix.Write(there[1], b[:])
			_, _ = unix.Read(back[0], b[:])
		}
		fmt.Println(int64(time.Since(begin)) / int64(2*trips))
	}
}

func bounce(from, to int) {
	Stay(0)
	for b := [1]byte{}; ; {
		_, _ = unix.Read(from, b[:])
		_, _ = unix.Write(to, b[:])
	}
}
