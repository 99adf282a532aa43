package apply

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockGroup is the group that is locked. It holds no task and no group.
const lockGroup = "plimsoll-lock"

// Lock is held by the one process that may write a cgroup hierarchy. The kernel lets go of it when the process dies.
type Lock struct{ dir *os.File }

// LockedError says who holds the lock.
type LockedError struct {
	Root string
	PID  int // 0 when not known: the holder may be in another PID namespace
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another plimsoll already runs on %s", e.Root)
	}
	return fmt.Sprintf("another plimsoll already runs on %s: process %d", e.Root, e.PID)
}

// Hint says what a person can do.
func (e *LockedError) Hint() string {
	if e.PID == 0 {
		return "stop it first; `grep FLOCK /proc/locks` on the host names its process"
	}
	return fmt.Sprintf("ask it with `plimsoll status`, or stop it first: kill -TERM %d", e.PID)
}

// TakeLock locks an own group at the root of the hierarchy that carries the cpu controller: the state directory can
// differ between two agents, the hierarchy cannot. It locks no file that was there before, for those can be opened by
// anybody, and a lock needs no more than that: flock(2) no right to write, a read lock of fcntl(2) that to read, and
// the latter keeps a write lock out. The group can be opened by root only from the moment in which it is made
// (kernel/cgroup/cgroup.c, cgroup_mkdir). It is removed by who holds it, so a lock counts only on the group that stands
// there after it was taken.
func TakeLock(cgroupRoot string) (*Lock, error) {
	name := filepath.Join(cgroupRoot, lockGroup)
	for {
		if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock the cgroup root: %w", err)
		}
		dir, err := lockDir(name)
		switch {
		case err == nil && stands(dir):
			return &Lock{dir}, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			defer dir.Close()
			return nil, &LockedError{Root: cgroupRoot, PID: holder(dir)}
		}
		dir.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else its holder has just removed it
			return nil, fmt.Errorf("lock the cgroup root: %w", err)
		}
	}
}

// lockDir opens a directory and locks it. It is open when it is another's, too.
func lockDir(name string) (*os.File, error) {
	dir, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return dir, fmt.Errorf("flock %s: %w", name, err)
	}
	return dir, nil
}

// stands says whether an open directory still has its name.
func stands(dir *os.File) bool {
	open, err1 := dir.Stat()
	named, err2 := os.Lstat(dir.Name())
	return err1 == nil && err2 == nil && os.SameFile(open, named)
}

// Release lets another process take the lock. The group is removed while it is held: nobody else's is.
func (l *Lock) Release() error {
	err := os.Remove(l.dir.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.dir.Close())
}

// holder looks up who has locked a file; 0 when it cannot be told.
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
