// Package lock has one agent at a time write the control groups of a machine,
// and passes what it wrote to its successor.
package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The lock of a machine: one process at a time writes a cgroup hierarchy.
//
// Problem: two agents on one hierarchy would put back each other's values, also where each has a state directory, a
// mount namespace and a PID namespace of its own. What all of them share is the hierarchy. But each file and directory
// at the root of a hierarchy is readable for everybody, and whoever can open a file for reading can lock it: a flock,
// exclusive or shared, by any user, keeps all others from a flock, and a read lock (fcntl) keeps them from a write
// lock.
//
// Approach: two locks, and a process needs the first one, or, where a process that is no agent has that, the second.
//
// The first is a flock on a file of mode 0600 in LockDir, named after the device and inode of the hierarchy's root.
// Only root can open the file. Containers mount the directory from the node. Whoever takes the lock writes into the
// file who it is: so a process that only locks the file, as flock(1) does, is known as a stranger.
//
// The second, the mark, is a write lock (F_OFD_SETLK) on a range of the hierarchy's own cgroup.procs that nobody hits
// by chance. It is seen from every mount and PID namespace, and so finds an agent that does not share LockDir. Only a
// process that may write the hierarchy can hold it. Others can be in its way with a read lock: they are named, and
// nobody waits for them.
//
// Known limits: a process of root's on the node that means harm can take both locks. It could as well write every
// limit, or kill the agent; it is named, and not waited for unless it poses as an agent. Two agents that do not share
// LockDir do not see each other while a stranger has a read lock on cgroup.procs. A holder in another PID namespace has
// no name, nor has one whose disk is full: the mark tells that it is an agent.

// LockDir is where the locks of a machine are.
const LockDir = "/run/plimsoll-lock"

// Place says what is locked, where, and by whom.
type Place struct {
	Dir      string // of the locks: LockDir, but for tests
	Root     string // of the hierarchy that carries the cpu controller
	StateDir string // of the process that takes the lock

	Installation string // the DaemonSet of that process; "": none
	Brief        bool   // it gives the lock back soon, unless it calls Keep
}

// Lock is held by the one process that may write a cgroup hierarchy. The kernel lets go of it when the process dies.
type Lock struct {
	file, mark *os.File // nil: a stranger has it, or it cannot be had
	place      Place
	unnamed    error // why the file does not say who has it; nil: it does
	Strangers  []Process
}

// lockOwner is what the holder of a lock writes into the file.
type lockOwner struct {
	PID   int    `json:"pid"`   // in its own namespace
	Start uint64 `json:"start"` // of the process, which no other process of that PID has
	State string `json:"state"` // the device and inode of its state directory

	Installation string `json:"installation,omitempty"`
	Brief        bool   `json:"brief,omitempty"`
}

// How often the holder of a file is looked at before it counts as a stranger: an agent may have locked the file and not
// yet written who it is.
const looks = 50

// Take takes the lock of a machine, or says who has it.
func Take(p Place) (*Lock, error) {
	if err := p.prepare(); err != nil {
		return nil, &lockDirError{p.Dir, err}
	}
	for look := 1; ; look++ {
		file, err := p.lockFile()
		if err == nil {
			return p.own(file)
		}
		var locked *TakenError
		switch {
		case !errors.As(err, &locked):
			return nil, &lockDirError{p.Dir, err}
		case !locked.Stranger:
			return nil, err
		case look < looks:
			time.Sleep(again)
			continue
		}
		switch mark, at := takeMark(p.Root); at {
		case markTaken:
			return &Lock{mark: mark, Strangers: []Process{locked.Process}}, nil
		case markAgents: // the agent could not write its name, or the stranger was there before it
			return nil, &TakenError{Root: p.Root}
		}
		return nil, err
	}
}

// own completes the lock of a file: with the owner's name, and with the mark. One of the two is enough: a full disk,
// which takes no name, must not keep anybody from restoring.
func (p Place) own(file *os.File) (*Lock, error) {
	l, at := &Lock{file: file, place: p, unnamed: p.sign(file)}, markAbsent
	switch l.mark, at = takeMark(p.Root); {
	case at == markAgents:
		err := &TakenError{Root: p.Root, Unshared: p.Dir}
		return nil, errors.Join(err, l.Release())
	case at == markStrangers:
		l.Strangers = lockers(filepath.Join(p.Root, markFile))
	}
	if l.unnamed != nil && l.mark == nil { // it would be taken for a stranger
		return nil, errors.Join(fmt.Errorf("lock the machine: %w", l.unnamed), l.Release())
	}
	return l, nil
}

// Sign writes into the file who has the lock, where Take could not: until then nobody can name or end a holder that
// hangs. Only one goroutine at a time may call it.
func (l *Lock) Sign() error {
	if l.unnamed != nil {
		l.unnamed = l.place.sign(l.file)
	}
	return l.unnamed
}

// Keep says that a lock taken with Brief is not given back soon.
func (l *Lock) Keep() {
	if l.place.Brief = false; l.file != nil {
		l.unnamed = l.place.sign(l.file)
	}
}

// sign writes into the file of the lock who has it.
func (p Place) sign(file *os.File) error {
	pid, start := Self()
	text, err := json.Marshal(lockOwner{pid, start, identity(p.StateDir), p.Installation, p.Brief})
	if err == nil { // the old text stays as long as there is no room for another one
		_, err = file.WriteAt(append(text, '\n'), 0)
	}
	if err == nil {
		err = file.Truncate(int64(len(text)) + 1)
	}
	return err
}

// prepare makes the directory, in which nobody else may make files.
func (p Place) prepare() error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(p.Dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o022 != 0 || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory that only its owner can write", p.Dir)
	}
	// So that it has an inode; whoever writes in it says what is wrong. The socket in it may be for others, too.
	_ = os.MkdirAll(p.StateDir, 0o711)
	return nil
}

// name is the path of the lock's file.
func (p Place) name() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(p.Root, &st); err != nil {
		return "", &fs.PathError{Op: "stat", Path: p.Root, Err: err}
	}
	return filepath.Join(p.Dir, fmt.Sprintf("%d-%d-%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)), nil
}

// lockFile locks the file, or says in a TakenError who has locked it.
func (p Place) lockFile() (*os.File, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			defer f.Close()
			return nil, p.locked(f)
		case err != nil:
			return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: err}, f.Close())
		case identity(name) == identityOf(f):
			return f, nil
		}
		f.Close() // the process that let go of the lock removed the file after we had opened it
	}
}

// locked says who has locked a file.
func (p Place) locked(f *os.File) *TakenError {
	var by lockOwner
	_ = json.NewDecoder(f).Decode(&by) // without a name it is a stranger
	pid := flocker(f)
	ours := by.State != "" && by.State == identity(p.StateDir)
	e := &TakenError{Root: p.Root, Process: processOf(pid), Start: by.Start, OurState: ours,
		OtherInstallation: by.Installation != p.Installation, Brief: by.Brief}
	if by.Start == 0 || pid != 0 && started(pid) != by.Start {
		e.Stranger, e.OurState, e.OtherInstallation, e.Brief = true, false, false, false
	}
	return e
}

// Holder says who holds the lock; nil: nobody. It does not try to take the lock, for that would keep an agent that
// starts from it.
func Holder(p Place) (*TakenError, error) {
	name, err := p.name()
	if err != nil {
		return nil, fmt.Errorf("find the holder of the lock: %w", err)
	}
	var stranger *TakenError
	f, err := os.Open(name)
	switch {
	case err == nil:
		defer f.Close()
		if flocker(f) != 0 {
			e := p.locked(f)
			if !e.Stranger {
				return e, nil
			}
			stranger = e
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("find the holder of the lock: %w", err)
	}
	if marked(p.Root) {
		return &TakenError{Root: p.Root}, nil
	}
	return stranger, nil
}

// Release lets another process take the lock.
func (l *Lock) Release() error {
	var err error
	if l.mark != nil {
		err = l.mark.Close()
	}
	if l.file != nil {
		_ = os.Remove(l.file.Name()) // nobody else has it under this name; where it stays it is used again
		err = errors.Join(err, l.file.Close())
	}
	return err
}

// TakenError says who holds the lock.
type TakenError struct {
	Root string
	Process
	Start    uint64 // when the process started; 0: not known
	OurState bool   // it has the state directory of whoever asks
	Stranger bool   // no agent: it has only locked the file
	Unshared string // the directory of locks that it does not share; "": it does

	OtherInstallation bool // it is known not to be of the installation of whoever asks
	Brief             bool // it has the lock for a moment, and is no agent that runs
}

func (e *TakenError) Error() string {
	switch {
	case e.Stranger:
		return fmt.Sprintf("%v, which is no plimsoll, has the lock of %s", e.Process, e.Root)
	case e.Unshared != "":
		return fmt.Sprintf("another plimsoll already runs on %s, and does not share %s", e.Root, e.Unshared)
	case e.PID == 0:
		return fmt.Sprintf("another plimsoll already runs on %s", e.Root)
	}
	return fmt.Sprintf("another plimsoll already runs on %s: process %d", e.Root, e.PID)
}

// Hint says what a person can do.
func (e *TakenError) Hint() string {
	switch {
	case e.Stranger && e.PID != 0:
		return fmt.Sprintf("see what it is, and end it: kill %d", e.PID)
	case e.Unshared != "":
		return fmt.Sprintf("stop it first; in a container it needs the node's %s", e.Unshared)
	case e.PID == 0:
		return "stop it first; `grep FLOCK /proc/locks` on the host names its process"
	}
	return fmt.Sprintf("ask it with `plimsoll status`, or stop it first: kill -TERM %d", e.PID)
}

// lockDirError is met when the lock cannot be had although no process has it.
type lockDirError struct {
	dir string
	error
}

func (e *lockDirError) Error() string { return "lock the machine: " + e.error.Error() }

func (e *lockDirError) Unwrap() error { return e.error }

// Hint says what a person can do.
func (e *lockDirError) Hint() string {
	if errors.Is(e.error, syscall.EROFS) || errors.Is(e.error, fs.ErrPermission) {
		return fmt.Sprintf("all agents of a machine share %s: mount the node's in a container, "+
			"and name it in RuntimeDirectory= of a unit", e.dir)
	}
	return ""
}
