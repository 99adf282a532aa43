package lock

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The mark is a write lock on the range of cgroup.procs that spells "plimsoll". The kernel does not tell who holds it:
// an open file description does (F_OFD_SETLK), whichever process has that.
const (
	markFile        = "cgroup.procs"
	markStart int64 = 0x706c696d736f6c6c
	markSize  int64 = 1
)

// markAt is what became of an attempt to take the mark.
type markAt int

const (
	markTaken     markAt = iota
	markAbsent           // the hierarchy cannot be written here, or has no such file
	markAgents           // an agent has it
	markStrangers        // processes that are no agent are in the way
)

// takeMark tries to take the mark. The file keeps it open.
func takeMark(root string) (*os.File, markAt) {
	f, err := os.OpenFile(filepath.Join(root, markFile), os.O_WRONLY, 0)
	if err != nil {
		return nil, markAbsent
	}
	lock := markOf(unix.F_WRLCK)
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
	if err == nil {
		return f, markTaken
	}
	defer f.Close()
	switch {
	case !errors.Is(err, unix.EAGAIN): // as where a profile of AppArmor's forbids it
		return nil, markAbsent
	case hasMark(f):
		return nil, markAgents
	}
	return nil, markStrangers
}

// marked says whether an agent has the mark.
func marked(root string) bool {
	f, err := os.Open(filepath.Join(root, markFile))
	if err != nil {
		return false
	}
	defer f.Close()
	return hasMark(f)
}

// hasMark asks for what is in the way of a read lock: read locks are not, and a write lock of the same range is an
// agent's. One of another range, as of the whole file, is that of a process which locks the file for reasons of its
// own.
func hasMark(f *os.File) bool {
	lock := markOf(unix.F_RDLCK)
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type == unix.F_WRLCK && lock.Start == markStart && lock.Len == markSize
}

func markOf(kind int16) unix.Flock_t {
	return unix.Flock_t{Type: kind, Whence: unix.SEEK_SET, Start: markStart, Len: markSize}
}
