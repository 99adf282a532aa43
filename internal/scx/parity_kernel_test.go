package scx

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// BenchmarkParity runs the same work on the kernel's own scheduler and on ours, in turns on one machine: without
// offline work, where ours must be no worse, and with it. A figure is the median of the rounds, and each ratio is ours
// by the kernel's: on an emulated machine the ratio does not depend on the machine's speed. test/vm/parity.sh runs it.
func BenchmarkParity(b *testing.B) {
	if _, err := ReadState(); err != nil {
		cgrouptest.Elsewhere(b, "test/vm/parity.sh", "%v", err)
	}
	works := parityWorks()
	figures := map[string][2][]lateness{}
	for i := range parityRounds {
		for turn := range 2 {
			ours := (i + turn) % 2 // which of the two comes first takes turns, too
			for name, got := range measureParity(b, works, ours == 1) {
				f := figures[name]
				f[ours] = append(f[ours], got)
				figures[name] = f
			}
		}
	}
	for _, w := range works {
		kernel, own := medianOf(figures[w.name][0]), medianOf(figures[w.name][1])
		fmt.Printf("%-36s kernel p50 %6.0f p99 %6.0f us, ours p50 %6.0f p99 %6.0f us, ratio p50 %.2f p99 %.2f\n",
			w.name, us(kernel.p50), us(kernel.p99), us(own.p50), us(own.p99), float64(own.p50)/float64(kernel.p50),
			float64(own.p99)/float64(kernel.p99))
	}
}

const parityRounds = 3

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// work is what one task does while others spin.
type work struct {
	name            string
	helper          string // what the task does
	online, offline int    // tasks that spin beside it, in a group each class
}

func parityWorks() []work {
	return []work{
		{"wake-up, alone", helperSleep, 0, 0},
		{"wake-up, beside 2 online", helperSleep, 2, 0},
		{"wake-up, beside 4 online", helperSleep, 4, 0},
		{"round trip of 2 tasks, alone", helperPipe, 0, 0},
		{"round trip of 2 tasks, beside 2 online", helperPipe, 2, 0},
		{"wake-up, beside 2 offline", helperSleep, 0, 2},
	}
}

// lateness sums up how long something took.
type lateness struct{ p50, p99 time.Duration }

func medianOf(list []lateness) lateness {
	middle := func(of func(lateness) time.Duration) time.Duration {
		var all []time.Duration
		for _, l := range list {
			all = append(all, of(l))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return lateness{middle(func(l lateness) time.Duration { return l.p50 }),
		middle(func(l lateness) time.Duration { return l.p99 })}
}

// measureParity does all the works once, by our scheduler or by the kernel's. Offline work is idle in both cases, as
// the agent sets it.
func measureParity(b *testing.B, works []work, ours bool) map[string]lateness {
	b.Helper()
	online, spin, offline := cgrouptest.New(b), cgrouptest.New(b), cgrouptest.New(b)
	if err := os.WriteFile(offline.File("cpu.idle"), []byte("1"), 0); err != nil {
		b.Fatal(err)
	}
	if ours {
		s, err := Open(Options{})
		if err == nil {
			err = s.Set(inode(b, offline), Setting{Class: Offline})
		}
		if err != nil {
			b.Fatal(err)
		}
		defer func() {
			if _, err := s.Close(); err != nil {
				b.Error(err)
			}
		}()
	}
	got := map[string]lateness{}
	for _, w := range works {
		list := append(spin.Spin(w.online), offline.Spin(w.offline)...)
		time.Sleep(200 * ms)
		got[w.name] = ask(b, online, w.helper)
		for _, p := range list {
			p.Stop()
		}
	}
	return got
}

// ask makes a helper do its work in a group.
func ask(b *testing.B, g *cgrouptest.Group, helper string) lateness {
	b.Helper()
	cmd, lines, in := cgrouptest.Dialogue(b, helper)
	g.Move(cmd.Process.Pid)
	_, err := io.WriteString(in, "go\n")
	lines.Scan()
	var l lateness
	if _, scan := fmt.Sscan(lines.Text(), &l.p50, &l.p99); err != nil || scan != nil {
		b.Fatalf("helper %s: %q, %v, %v", helper, lines.Text(), err, scan)
	}
	return l
}

// What helpers do, and how often.
const (
	helperSleep = "sleep"
	helperPipe  = "pipe"

	naps  = 300
	nap   = 2 * ms
	trips = 300
)

// help measures on request, and writes how long that took.
func help(measure func() ([]time.Duration, error)) {
	bufio.NewScanner(os.Stdin).Scan()
	list, err := measure()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	slices.Sort(list)
	fmt.Println(int64(list[len(list)/2]), int64(list[len(list)*99/100]))
}

// sleeps is how late a thread was that slept each time.
func sleeps() ([]time.Duration, error) {
	runtime.LockOSThread()
	var list []time.Duration
	for range naps {
		ts, begin := unix.NsecToTimespec(int64(nap)), time.Now()
		if err := unix.Nanosleep(&ts, nil); err != nil {
			return nil, err
		}
		list = append(list, time.Since(begin)-nap)
	}
	return list, nil
}

// roundTrips is how long a byte took to another thread and back.
func roundTrips() ([]time.Duration, error) {
	var there, back [2]int
	if err := unix.Pipe(there[:]); err != nil {
		return nil, err
	}
	if err := unix.Pipe(back[:]); err != nil {
		return nil, err
	}
	go func() {
		runtime.LockOSThread()
		for b := make([]byte, 1); ; {
			if n, err := unix.Read(there[0], b); n != 1 || err != nil {
				return
			}
			if _, err := unix.Write(back[1], b); err != nil {
				return
			}
		}
	}()
	runtime.LockOSThread()
	var list []time.Duration
	for b := make([]byte, 1); len(list) < trips; {
		begin := time.Now()
		if _, err := unix.Write(there[1], b); err != nil {
			return nil, err
		}
		if _, err := unix.Read(back[0], b); err != nil {
			return nil, err
		}
		list = append(list, time.Since(begin))
	}
	return list, nil
}
