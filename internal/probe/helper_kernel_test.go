package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

func TestMain(m *testing.M) {
	cgrouptest.Main(m, map[string]func(){"keep": keep, "sleep": sleep, "hog": hog})
}

// keep opens a probe and prints the maps and programs that it keeps.
func keep() {
	p, err := Open(Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, program := range p.programs.All() {
		info, err := program.Info()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		id, _ := info.ID()
		fmt.Println("program", id)
	}
	fmt.Println("ready")
	time.Sleep(time.Minute)
	runtime.KeepAlive(p) // or the collector closes its files
}

// sleep is a process on CPU 1 that wakes every 5 ms and does next to nothing.
func sleep() {
	var set unix.CPUSet
	set.Set(1)
	threads, err := os.ReadDir("/proc/self/task") // those that come later are on the CPU of their makers
	for _, entry := range threads {
		tid, _ := strconv.Atoi(entry.Name())
		err = errors.Join(err, unix.SchedSetaffinity(tid, &set))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for end := Monotonic() + time.Minute; Monotonic() < end; {
		nap := unix.NsecToTimespec(int64(5 * ms))
		_ = unix.Nanosleep(&nap, nil)
		for wake := Monotonic(); Monotonic() < wake+ms/5; { // it is to use up what its CPU still has
		}
	}
}

// hog has CPU 0 for itself, for 300 ms at a time.
func hog() {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(0)
	attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if err := errors.Join(unix.SchedSetaffinity(0, &set), unix.SchedSetAttr(0, &attr, 0)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for range 8 {
		for begin := Monotonic(); Monotonic() < begin+300*ms; {
		}
		time.Sleep(130 * ms) // so that it begins at another time of a period of 50 ms
	}
}

// helper starts a helper, which is killed when the test ends, and returns what it says up to "ready".
func helper(t testing.TB, role string) (*exec.Cmd, []string) {
	t.Helper()
	cmd, lines, _ := cgrouptest.Dialogue(t, role)
	var said []string
	for lines.Scan() {
		if lines.Text() == "ready" {
			return cmd, said
		}
		said = append(said, lines.Text())
	}
	t.Fatalf("helper %s: %q", role, said)
	return nil, nil
}
