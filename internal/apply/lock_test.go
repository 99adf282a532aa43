package apply

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
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
	if pid := strconv.Itoa(os.Getpid()); !strings.Contains(err.Error(), pid) || !strings.Contains(locked.Hint(), pid) {
		t.Errorf("error %q, hint %q", err, locked.Hint())
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := TakeLock(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestLockTakesNoFileOfOthers: whoever can open the root can lock it, and must not keep the agent from starting.
func TestLockTakesNoFileOfOthers(t *testing.T) {
	dir := t.TempDir()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := unix.Flock(int(root.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	lock, err := TakeLock(dir)
	if err != nil {
		t.Fatalf("kept out by a lock of the root: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestLockCountsWhereItStands: of many that come while the group of the lock is removed and made again, one has it.
func TestLockCountsWhereItStands(t *testing.T) {
	dir := t.TempDir()
	var holders, taken atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				lock, err := TakeLock(dir)
				if errors.As(err, new(*LockedError)) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				runtime.Gosched()
				holders.Add(-1)
				if err := lock.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() == 0 {
		t.Error("nobody ever had it")
	}
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
