package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Handover: how an agent leaves its values in place for a waiting successor.
//
// Problem: an update ends the old agent by the same signal as an uninstallation. After an update its values should
// stay; after an uninstallation no program is left to restore them. The agent cannot know for certain who sent the
// signal and whether a successor will start: the API server may be unreachable, the node may no longer be selected.
//
// Approach: the successor starts first (maxSurge of a DaemonSet) and waits: it holds a lock on a file in the state
// directory, which the kernel releases when the process dies. The ending agent hands over if, and only if, a successor
// waits; else it restores everything. It announces the handover in a file before it checks for a successor, and a
// successor that gives up checks for that file after it has released its lock. So of two agents that end at the same
// time, one knows that it is the last, in whatever order their steps happen: it waits for the other's end and restores
// everything.
//
// There is one place in line, for a successor of the same installation. An agent of another one would have it for as
// long as the running agent lives, and an update of either installation, which starts the new agent before it ends the
// old one, would never end. Such an agent takes the lock when it is free and no successor waits.
//
// Known limits: if both die of SIGKILL, the values stay as after any crash, until plimsoll-lease, `plimsoll restore` or
// the next start restores them.
const (
	lineFile = "next"       // locked by the successor that waits
	passFile = "passing-on" // exists while values are left in place for a successor
)

// again is how often a lock that another process holds is tried.
const again = 10 * time.Millisecond

// Line is the place of the successor that waits.
type Line struct {
	dir  string
	file *os.File
}

// WaitForHandover waits until this process is the successor, or the context ends.
func WaitForHandover(ctx context.Context, stateDir string) (*Line, error) {
	if err := os.MkdirAll(stateDir, 0o711); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	for {
		f, err := lockFile(filepath.Join(stateDir, lineFile))
		if err == nil {
			return &Line{stateDir, f}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("wait for the handover: %w", err)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Take waits until the running agent has exited, and takes its lock. passed says that the agent left its values in
// place for us. After the context's end Take gives up, and returns a lock only if the values were handed over at that
// moment: the caller must then restore them. A stranger that has the lock is not waited for: it may never end. Nor is
// an agent of another installation, which has taken it because this process did not in time.
func (l *Line) Take(ctx context.Context, p Place) (lock *Lock, passed bool, err error) {
	defer l.leave()
	for {
		lock, err := Take(p)
		var locked *TakenError
		switch {
		case err == nil:
			return lock, l.passed(), nil
		case !errors.As(err, &locked), locked.Stranger, locked.OtherInstallation && !locked.Brief && !l.passed():
			return nil, false, err
		}
		if pause(ctx) != nil {
			l.leave()
			if !l.passed() {
				return nil, false, ctx.Err()
			}
			time.Sleep(again)
		}
	}
}

// leave releases the place for another process.
func (l *Line) leave() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

func (l *Line) passed() bool {
	_, err := os.Lstat(filepath.Join(l.dir, passFile))
	return err == nil
}

// EndHandover ends the handover, once the values in the journal are taken over or restored.
func EndHandover(stateDir string) error {
	if err := os.Remove(filepath.Join(stateDir, passFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end the handover: %w", err)
	}
	return nil
}

// HandOver says whether the values may stay in place, because a successor waits and takes them over.
func HandOver(stateDir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(stateDir, passFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return false, fmt.Errorf("hand over: %w", err)
	}
	f.Close()
	line, err := lockFile(filepath.Join(stateDir, lineFile))
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err == nil:
		defer line.Close() // after passFile is removed: a new successor must not find it
	}
	return false, errors.Join(err, EndHandover(stateDir))
}

// SuccessorWaits says whether another agent waits for the handover. The caller must hold the lock of the cgroup root:
// an agent that ends at the same moment would take this test of the lock for a successor.
func SuccessorWaits(stateDir string) (bool, error) {
	f, err := lockFile(filepath.Join(stateDir, lineFile))
	switch {
	case err == nil:
		return false, f.Close()
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS): // no agent has made the file here
		return false, nil
	}
	return false, fmt.Errorf("look for a successor: %w", err)
}

// lockFile locks a file, and makes it if it does not exist; EWOULDBLOCK if another process has the lock.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(again):
		return nil
	}
}
