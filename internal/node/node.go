// Package node opens this node for a command that writes to it.
//
// Problem: whoever writes to control groups needs more than their files. Of all that could write, one may at a time;
// what it writes must be known after its death; and where it ends in order,
// another one may go on with what was written.
//
// Approach: Dirs says where things are. Find finds the control groups; a lock makes the process the only one that
// writes (package lock); Open opens the journal (package journal), and with it the writer (package apply). An agent
// that stands by takes over the lock and the journal of the one before it,
// and puts nothing back that is handed over to it (handover.go).
package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/hint"
	"plimsoll/internal/journal"
	"plimsoll/internal/lock"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
)

// Dirs says where the node has what is opened.
type Dirs struct {
	CgroupRoot string // where the control groups are mounted
	StateDir   string // the journal and the sockets of an agent
	LockDir    string // the locks of all agents
}

// Node is this node, for this process alone once it has the lock.
type Node struct {
	Dirs
	Dir     *cgroup.Dir
	Tree    *cgroup.Tree
	Lock    *lock.Lock       // nil: not taken
	Journal *journal.Journal // nil: not open
	Writer  *apply.Writer    // nil: the journal is not open
	notify  *cgroup.Notify   // nil: not watched

	Installation string // of the agent: report.Status.Installation
}

// OpenTree finds the control groups, to read them.
func (d Dirs) OpenTree() (*cgroup.Dir, *cgroup.Tree, error) {
	dir := cgroup.NewDir(d.CgroupRoot)
	tree, err := cgroup.Detect(dir)
	if err != nil {
		dir.Close()
		return nil, nil, hint.With(fmt.Errorf("%s: %w", d.CgroupRoot, err),
			"is --cgroup-root where the control groups are mounted? `mount | grep cgroup` shows it")
	}
	return dir, tree.WithSysctls(cgroup.NewDir("/proc/sys/kernel")), nil
}

// Find finds the control groups, to write to them. The lock is not taken yet.
func (d Dirs) Find() (*Node, error) {
	if os.Geteuid() != 0 {
		return nil, hint.With(errors.New("control groups can be written by root only"), "run it with sudo")
	}
	dir, tree, err := d.OpenTree()
	if err != nil {
		return nil, err
	}
	return &Node{Dirs: d, Dir: dir, Tree: tree}, nil
}

// Open takes the lock, by (*Node).TakeLock or TakeUnusedLock, and opens the journal, which puts nothing back yet.
func (d Dirs) Open(take func(*Node) error) (*Node, error) {
	n, err := d.Find()
	if err != nil {
		return nil, err
	}
	if err = take(n); err == nil {
		err = n.OpenJournal()
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// place is what is locked: the hierarchy with the cpu controller.
func (n *Node) place() lock.Place {
	return lock.Place{Dir: n.LockDir, Root: filepath.Join(n.CgroupRoot, n.Tree.Dir("/")), StateDir: n.StateDir,
		Installation: n.Installation}
}

// TakeLock takes the lock, or says who has it (lock.TakenError).
func (n *Node) TakeLock() error {
	var err error
	n.Lock, err = lock.Take(n.place())
	return err
}

// Notes are for people: who has locked what agents lock, and keeps no agent from running, and what could not be read of
// the journal, which is then not put back.
func (n *Node) Notes() []string {
	var list []string
	for _, p := range n.Lock.Strangers {
		list = append(list,
			fmt.Sprintf("%v, which is no plimsoll, has locked the control groups: going on all the same", p))
	}
	for _, note := range n.Journal.Notes() {
		list = append(list, fmt.Sprintf("journal in %s: %s", n.StateDir, note))
	}
	return list
}

// OpenJournal opens the journal. The caller must have the lock.
func (n *Node) OpenJournal() error {
	boot, err := journal.BootID()
	if err != nil {
		return err
	}
	if n.Journal, err = journal.Open(n.StateDir, boot, time.Now); err != nil {
		return hint.With(err, stateHint(err, n.StateDir))
	}
	host := sysfs.NewHost("/")
	possible, _ := host.Possible() // where it cannot be read, those that are online have to do
	n.Writer = apply.New(n.Tree, n.Journal, time.Now)
	n.Writer.Tasks, n.Writer.Root, n.Writer.Possible, n.Writer.Online = &task.Kernel{}, "/", possible, host.Online
	return nil
}

// stateHint is what to do about a state directory that cannot be written, where that can be said.
func stateHint(err error, dir string) string {
	var said interface{ Hint() string }
	switch {
	case errors.As(err, &said):
		return said.Hint()
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("a restore can be done from a copy: cp -a %s /tmp/state && plimsoll restore --state-dir "+
			"/tmp/state", hint.Word(dir))
	}
	return ""
}

// WatchQuotas has the writer check for owners' writes that its refills undo.
func (n *Node) WatchQuotas() (err error) {
	if n.notify, err = cgroup.NewNotify(n.Tree, n.Dir.Root()); err == nil {
		n.Writer.Watching(n.notify)
	}
	return err
}

// Close gives the node back to others. What was written stays written.
func (n *Node) Close() {
	if n.notify != nil {
		_ = n.notify.Close()
	}
	if n.Journal != nil {
		n.Journal.Close()
	}
	if n.Lock != nil {
		_ = n.Lock.Release() // the kernel lets go of it anyway
	}
	n.Dir.Close()
}
