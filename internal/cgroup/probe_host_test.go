package cgroup

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// beSpinner has this test be the program that TestRuntimeOfOneThread starts.
const beSpinner = "PLIMSOLL_TEST_SPINNER"

// TestRuntimeOfOneThread: what other threads of the program run does not count, or a throttled program would never seem
// to stand still. The monitor of Go's runtime runs every 10 ms.
func TestRuntimeOfOneThread(t *testing.T) {
	if os.Getenv(beSpinner) != "" {
		spinBeside()
		return
	}
	t.Setenv(beSpinner, "1")
	spinner, err := Spin(os.Args[0], "-test.run=^TestRuntimeOfOneThread$")
	if err != nil {
		t.Fatal(err)
	}
	defer spinner.Stop()
	before, err := spinner.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	start := allThreads(t, spinner.PID())
	spinner.Go()
	const beside = 100 * time.Millisecond
	for end := time.Now().Add(time.Minute); allThreads(t, spinner.PID())-start < beside; time.Sleep(pollEvery) {
		if time.Now().After(end) {
			t.Fatal("nothing spins")
		}
	}
	after, err := spinner.Runtime()
	if err != nil || after-before > beside/2 {
		t.Errorf("%v of another thread count: %v", after-before, err)
	}
}

// spinBeside is a spinner whose other thread spins.
func spinBeside() {
	runtime.LockOSThread()
	fmt.Println(unix.Gettid())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	go func() {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		}
	}()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

func allThreads(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var ran time.Duration
		if _, err := fmt.Sscan(string(data), &ran); err != nil {
			t.Fatal(err)
		}
		sum += ran
	}
	return sum
}

// TestSpinnerSaysItsThread: a program that says something else is refused.
func TestSpinnerSaysItsThread(t *testing.T) {
	_, err := Spin("/bin/sh", "-c", "echo ready; read go")
	if err == nil || !strings.Contains(err.Error(), "which thread") {
		t.Error(err)
	}
}
