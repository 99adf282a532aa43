package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// helperVar says that this process is not a test, but a helper of one.
const helperVar = "PLIMSOLL_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVar) {
	case "":
		os.Exit(m.Run())
	case "hold":
		hold()
	case "sleep":
		sleep()
	case "switch":
		switches()
	}
}

// hold opens a probe and says what it holds.
func hold() {
	p, err := Open(Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, program := range p.programs() {
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
		begin := Monotonic()
		for range trips {
			var b [1]byte
			_, _ = unix.Write(there[1], b[:])
			_, _ = unix.Read(back[0], b[:])
		}
		fmt.Println(int64(Monotonic()-begin) / (2 * trips))
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

// helper starts a helper, which is killed when the test ends, and returns what it says up to "ready".
func helper(t testing.TB, role string) (*exec.Cmd, []string) {
	t.Helper()
	cmd, lines, _ := dialogue(t, role)
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

// dialogue starts a helper to talk to.
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
