package lease

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	if b, err := Read(dir); b != (Beat{}) || err != nil {
		t.Errorf("without a file: %+v, %v", b, err)
	}
	by := Process{12, 34}
	write := File(dir, by)
	name := filepath.Join(dir, fileName)
	for i, at := range []time.Duration{5 * time.Hour, time.Second, 2 * time.Second} { // shorter numbers, and a new file
		if err := write(at); err != nil {
			t.Fatal(err)
		}
		if b, err := Read(dir); b != (Beat{at, by}) || err != nil {
			t.Errorf("%+v, %v", b, err)
		}
		if i == 1 {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(name, []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(dir); err == nil {
		t.Errorf("half a line: %+v", b)
	}
}

func TestClockAdvances(t *testing.T) {
	before := Clock()
	time.Sleep(2 * time.Millisecond)
	if d := Clock() - before; before <= 0 || d < 2*time.Millisecond || d > time.Minute {
		t.Errorf("%v after %v", d, before)
	}
}

// TestEndHoldsTheProcess: when End asks whether the process is the right one, no other can take its number any more.
func TestEndHoldsTheProcess(t *testing.T) {
	holds := func(pid int) (n int) {
		files, err := filepath.Glob("/proc/self/fdinfo/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err == nil && strings.Contains(string(text), fmt.Sprintf("\nPid:\t%d\n", pid)) { // of a pidfd
				n++
			}
		}
		return n
	}
	pid := os.Getpid()
	before, during := holds(pid), 0
	err := End(pid, func() bool { during = holds(pid); return false }, 0)
	if !errors.Is(err, ErrOther) || during != before+1 || holds(pid) != before {
		t.Errorf("%d pidfds before, %d when asked, %d after: %v", before, during, holds(pid), err)
	}
}

// TestEnd: the process that is meant is killed, also where it is stopped; another one is not.
func TestEnd(t *testing.T) {
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	other := start()
	if err := End(other.Process.Pid, func() bool { return false }, time.Minute); !errors.Is(err, ErrOther) {
		t.Errorf("another process: %v", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process was killed: %v", err)
	}
	cmd := start()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := End(cmd.Process.Pid, func() bool { return true }, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	if err := End(cmd.Process.Pid, func() bool { return true }, time.Second); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a process that is no more: %v", err)
	}
}
