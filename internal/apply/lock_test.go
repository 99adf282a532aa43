package apply

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

func TestLockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	first, err := TakeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TakeLock(dir)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.Root != dir {
		t.Fatalf("second lock: %v", err)
	}
	if held, err := Holder(dir); err != nil || held == nil || held.PID != os.Getpid() {
		t.Errorf("held by %v, %v; want this process", held, err)
	}
	if pid := strconv.Itoa(os.Getpid()); !strings.Contains(err.Error(), pid) || !strings.Contains(locked.Hint(), pid) {
		t.Errorf("error %q, hint %q", err, locked.Hint())
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if free, err := Holder(dir); err != nil || free != nil {
		t.Fatalf("after the release it is held by %v, %v", free, err)
	}
	second, err := TakeLock(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestLockOfAStranger: any user who can open the root can hold the lock. Then it is said who, and not that an agent runs.
func TestLockOfAStranger(t *testing.T) {
	if os.Getuid() != 0 {
		cgrouptest.Skip(t, "cannot be another user: not root")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil { // both are this test's own
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.Command("flock", dir, "sh", "-c", "echo locked; read end")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	unprivileged := func(err error) {
		t.Helper()
		var locked *LockedError
		if !errors.As(err, &locked) || locked.User != nobody || locked.PID != cmd.Process.Pid || !strings.Contains(err.Error(), "no plimsoll") {
			t.Errorf("%+v", err)
		}
	}
	_, err := TakeLock(dir)
	unprivileged(err)
	line, err := WaitForHandover(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, _, err = line.Take(ctx, dir) // and it is not waited for
	unprivileged(err)
}

func TestLockOfNothing(t *testing.T) {
	if _, err := TakeLock(t.TempDir() + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestUnknownHolderHasAHint(t *testing.T) {
	e := &LockedError{Root: "/sys/fs/cgroup"}
	if strings.Contains(e.Error(), "0") || !strings.Contains(e.Hint(), "/proc/locks") {
		t.Errorf("error %q, hint %q", e.Error(), e.Hint())
	}
}

func TestParseLocks(t *testing.T) {
	const text = "1: POSIX  ADVISORY  WRITE 7 00:1b:42 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 8 00:1b:43 0 EOF\n" +
		"3: FLOCK  ADVISORY  WRITE 9 00:1b:42 0 EOF\n" +
		"3: -> FLOCK  ADVISORY  WRITE 10 00:1b:42 0 EOF\n" +
		"4: FLOCK  ADVISORY  WRITE 0 00:1b:44 0 EOF\n" + // of another PID namespace
		"5: FLOCK\n"
	for file, want := range map[string]int{"00:1b:42": 9, "00:1b:43": 8, "00:1b:44": 0, "00:1b:4": 0} {
		if got := parseLocks([]byte(text), file); got != want {
			t.Errorf("%s is held by %d, want %d", file, got, want)
		}
	}
	if parseLocks(nil, "00:1b:42") != 0 {
		t.Error("nobody holds nothing")
	}
}
