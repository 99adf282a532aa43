package apply

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lock is held by the one process that may write a cgroup hierarchy. The kernel lets go of it when the process dies.
type Lock struct{ dir *os.File }

// LockedError says who holds the lock.
type LockedError struct {
	Root string
	PID  int // 0 when not known: the holder may be in another PID namespace
	User int // whose it is; 0, root, also when not known
}

func (e *LockedError) Error() string {
	switch {
	case e.PID == 0:
		return fmt.Sprintf("another plimsoll already runs on %s", e.Root)
	case e.Unprivileged():
		return fmt.Sprintf("process %d of user %d, which is no plimsoll, has locked %s", e.PID, e.User, e.Root)
	}
	return fmt.Sprintf("another plimsoll already runs on %s: process %d", e.Root, e.PID)
}

// Unprivileged says whether no agent holds it: agents are root's.
func (e *LockedError) Unprivileged() bool { return e.User != 0 }

// Hint says what a person can do.
func (e *LockedError) Hint() string {
	switch {
	case e.PID == 0:
		return "stop it first; `grep FLOCK /proc/locks` on the host names its process"
	case e.Unprivileged():
		return fmt.Sprintf("see what it is, and end it: kill %d", e.PID)
	}
	return fmt.Sprintf("ask it with `plimsoll status`, or stop it first: kill -TERM %d", e.PID)
}

// TakeLock locks the root directory of the hierarchy that carries the cpu controller itself: the state directory can
// differ between two agents, the inode of the hierarchy cannot.
//
// Known limits: whoever can open that directory can lock it, so that a user of the host can keep an agent from starting; the
// error names that process. There is no file of root's alone in a hierarchy, and to make a group for it takes a right to
// write there (the root has mode 0555) that the agent does without (CAP_DAC_OVERRIDE).
func TakeLock(cgroupRoot string) (*Lock, error) {
	dir, err := os.Open(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("lock the cgroup root: %w", err)
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &Lock{dir}, nil
	}
	defer dir.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid := holder(dir)
		return nil, &LockedError{Root: cgroupRoot, PID: pid, User: user(pid)}
	}
	return nil, fmt.Errorf("lock the cgroup root %s: %w", cgroupRoot, err)
}

// Holder says who holds the lock of a root; nil: nobody. It does not try to take the lock, for that would keep an agent that
// starts from it.
//
// Known limit: /proc/locks lists no lock of a process in another PID namespace, other than a child of the reader's. There the
// answer is nobody.
func Holder(cgroupRoot string) (*LockedError, error) {
	dir, err := os.Open(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("find the holder of the lock: %w", err)
	}
	defer dir.Close()
	pid := holder(dir)
	if pid == 0 {
		return nil, nil
	}
	return &LockedError{Root: cgroupRoot, PID: pid, User: user(pid)}, nil
}

// Release lets another process take the lock.
func (l *Lock) Release() error { return l.dir.Close() }

// holder looks up who has locked a file; 0 when that is unknown.
func holder(f *os.File) int {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0
	}
	data, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	return parseLocks(data, fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino))
}

// user is whose a process is; 0 when that is unknown.
func user(pid int) int {
	var st unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) != nil {
		return 0
	}
	return int(st.Uid)
}

// parseLocks finds the process that has a flock on a file in /proc/locks (fs/locks.c, lock_get_status):
// "1: FLOCK  ADVISORY  WRITE 1234 00:1b:42 0 EOF". A waiting one has "->" for its second word.
func parseLocks(data []byte, file string) int {
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
