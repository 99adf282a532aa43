package cgrouptest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// helperVar says that this process is not a test, but a helper of one, and which.
const helperVar = "PLIMSOLL_TEST_HELPER"

// Main is the TestMain of packages whose tests have helpers: it runs the tests, or in a process that Dialogue started,
// its role.
func Main(m *testing.M, roles map[string]func()) {
	role := os.Getenv(helperVar)
	play := roles[role]
	switch {
	case role == "":
		os.Exit(m.Run())
	case role == switcher:
		switches()
	case play == nil:
		fmt.Printf("there is no helper %q\n", role)
		os.Exit(2)
	default:
		play()
	}
}

// Dialogue starts this test binary once more, in a role, to talk to. It is killed when the test ends.
func Dialogue(t testing.TB, role string) (*exec.Cmd, *bufio.Scanner, io.Writer) {
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

// Stay keeps the calling goroutine of a helper on one CPU.
func Stay(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Pin keeps processes on one CPU.
func Pin(t testing.TB, cpu int, list ...*Process) {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	for _, p := range list {
		if err := unix.SchedSetaffinity(p.PID(), &set); err != nil {
			t.Fatal(err)
		}
	}
}

// NeedTwoCPUs skips the test on one CPU: what is seen on another CPU needs another.
func NeedTwoCPUs(t testing.TB) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || !set.IsSet(0) || !set.IsSet(1) {
		Skip(t, "there are no CPUs 0 and 1: %v", err)
	}
}
