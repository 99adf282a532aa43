package runq

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// helperVar says that this process is not a test, but a helper of one.
const helperVar = "PLIMSOLL_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVar) {
	case "":
		os.Exit(m.Run())
	case "switch":
		switches()
	case "nap":
		nap()
	}
}

// What the programs cost a context switch of two threads in a watched container, in a pod.
//
//	go test -run '^$' -bench Switch -benchtime 20x ./internal/probe/runq
func BenchmarkSwitch(b *testing.B) {
	pod := cgrouptest.New(b)
	container := pod.Child("container")
	ask := pingPong(b, container)
	b.Run("without", func(b *testing.B) { ask(b) })
	for name, stats := range map[string]bool{"with": false, "by the kernel": true} {
		b.Run(name, func(b *testing.B) {
			p := open(b, Options{Stats: stats})
			set(b, p, container, 1)
			ask(b)
			if !stats {
				return
			}
			costs, err := p.Cost()
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range costs {
				if c.Runs > 1000 {
					b.ReportMetric(float64(c.Total)/float64(c.Runs), "ns/"+c.Program)
				}
			}
		})
	}
}

// pingPong starts two threads in a group that switch to and fro.
func pingPong(b *testing.B, g *cgrouptest.Group) func(*testing.B) {
	cmd, lines, in := dialogue(b, "switch")
	g.Move(cmd.Process.Pid)
	return func(b *testing.B) {
		var all []int
		for b.Loop() {
			fmt.Fprintln(in, "go")
			lines.Scan()
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, n)
		}
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2]), "ns/switch")
		b.ReportMetric(0, "ns/op")
	}
}

// switches says for each line that it gets how long a switch between two threads of one CPU takes.
func switches() {
	const trips = 50_000
	var there, back [2]int
	if err := errors.Join(unix.Pipe(there[:]), unix.Pipe(back[:])); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go bounce(there[0], back[1])
	stay()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begin := monotonic()
		for range trips {
			var b [1]byte
			_, _ = unix.Write(there[1], b[:])
			_, _ = unix.Read(back[0], b[:])
		}
		fmt.Println(int64(monotonic()-begin) / (2 * trips))
	}
}

// nap wakes every 2 ms on CPU 0, and does next to nothing.
func nap() {
	stay()
	for end := monotonic() + time.Minute; monotonic() < end; {
		rest := unix.NsecToTimespec(int64(2 * ms))
		_ = unix.Nanosleep(&rest, nil) // a signal only ends it early
	}
}

// stay keeps the calling goroutine on CPU 0.
func stay() {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(0)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func bounce(from, to int) {
	stay()
	for b := [1]byte{}; ; {
		_, _ = unix.Read(from, b[:])
		_, _ = unix.Write(to, b[:])
	}
}

// dialogue starts a helper to talk to, which is killed when the test ends.
func dialogue(t testing.TB, role string) (*exec.Cmd, *bufio.Scanner, io.Writer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out), in
}
