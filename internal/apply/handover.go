package apply

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

// How an agent passes what it has written to the next one, and only to one that is there to take it.
//
// Problem: an update of the agent ends the old one by the very signal by which an uninstallation does. After the one,
// what was written is to stay; after the other nobody is left to put it back. Who sent the signal, and whether somebody
// comes after, no program can know for certain: the API server may be away, the node may no longer be chosen.
//
// Approach: the next agent is there first (maxSurge of a DaemonSet). It waits: it holds a lock on a file in the
// state directory, which the kernel takes from it when it dies. The agent that ends passes on if, and only if, somebody
// waits, else it puts everything back. It writes that it passes on before it looks who stands there, and one
// that leaves the line looks for that word after it has left. So of two that end at the same time one knows that it is
// the last, whichever way their steps fall: it waits for the other's end and puts everything back.
//
// Known limits: when both die of SIGKILL, it is as after any crash: `plimsoll restore`, or the next start, puts back.
const (
	lineFile = "next"       // locked by who waits
	passFile = "passing-on" // what was written is for who waits
)

// again is how often a lock is tried that another process holds.
const again = 10 * time.Millisecond

// Line is a place in line behind the agent that runs.
type Line struct {
	dir  string
	file *os.File
}

// WaitForHandover waits for the one place there is, until the context ends.
func WaitForHandover(ctx context.Context, stateDir string) (*Line, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
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

// Take waits until the agent that runs is gone, and takes its lock. passed says that what it wrote was left in place
// for us. After the context's end it gives the place up, and returns a lock only if what was written was handed over
// in that very moment: it is then to be put back.
func (l *Line) Take(ctx context.Context, cgroupRoot string) (lock *Lock, passed bool, err error) {
	defer l.leave()
	for {
		lock, err := TakeLock(cgroupRoot)
		var locked *LockedError
		switch {
		case err == nil:
			return lock, l.passed(), nil
		case !errors.As(err, &locked), locked.Unprivileged():
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

// leave gives the place to another.
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

// EndHandover ends it: what stood in the journal is either taken over or put back.
func EndHandover(stateDir string) error {
	if err := os.Remove(filepath.Join(stateDir, passFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end the handover: %w", err)
	}
	return nil
}

// HandOver says whether what was written may stay: somebody waits, and takes it.
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
		defer line.Close() // after the word is taken back: who comes into line now finds none
	}
	return false, errors.Join(err, EndHandover(stateDir))
}

// SuccessorWaits says whether another agent waits for the handover. The caller holds the lock of the cgroup root: an agent
// that ends at the same moment would take this look at the file for a successor.
func SuccessorWaits(stateDir string) (bool, error) {
	f, err := lockFile(filepath.Join(stateDir, lineFile))
	switch {
	case err == nil:
		return false, f.Close()
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS): // no agent can have made the file here
		return false, nil
	}
	return false, fmt.Errorf("look for a successor: %w", err)
}

// lockFile locks a file, which is made if need be; EWOULDBLOCK when another process has it.
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
