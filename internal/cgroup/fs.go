// Package cgroup is the only package that knows how the kernel spells things in control groups: which hierarchies
// there are, what the files are called on v1 and v2, and what their values mean.
package cgroup

import (
	"path"
	"strings"
)

// FS is the seam between Plimsoll and the kernel: a tree of control-group files below one root. Names are relative
// and slash-separated ("cpu/lab/a/cpu.stat" on v1, "lab/a/cpu.stat" on v2). Dir is the real one, sim.Kernel a
// simulated one. Errors wrap the kernel's errno (fs.ErrNotExist, syscall.EINVAL, syscall.ENODEV ...).
type FS interface {
	ReadFile(name string) ([]byte, error)
	// WriteFile writes data in one write(2), as the kernel requires.
	WriteFile(name string, data []byte) error
	// Dirs lists the names of the directories in a directory, sorted.
	Dirs(name string) ([]string, error)
	// Inode is the inode number of a directory or file: the identity of a group.
	Inode(name string) (uint64, error)
}

// keeper is an FS that can keep files open.
type keeper interface {
	KeepOnly(most int)
	KeepOpen(dir string)
	CloseFiles(dir string)
	Forget(dir string)
}

// KeepOnly lets the FS, if it can, keep files open only of groups of KeepOpen, and at most this many.
func (t *Tree) KeepOnly(most int) {
	if k, ok := t.fs.(keeper); ok {
		k.KeepOnly(most)
	}
}

// KeepOpen keeps the files open that each reading or each refill of a group uses, for a group that is read often.
func (t *Tree) KeepOpen(group string) { t.keep(group, keeper.KeepOpen) }

// CloseFiles closes the files of a group that is read rarely, except the one that a refill writes.
func (t *Tree) CloseFiles(group string) { t.keep(group, keeper.CloseFiles) }

// Forget closes all files of a group and undoes KeepOpen: the group is gone, or of no interest. The groups in it have
// files of their own.
func (t *Tree) Forget(group string) { t.keep(group, keeper.Forget) }

func (t *Tree) keep(group string, do func(keeper, string)) {
	k, ok := t.fs.(keeper)
	if !ok {
		return
	}
	do(k, t.Dir(group))
	for _, hierarchy := range []string{t.acct, t.cpuset} {
		if t.version == V1 && hierarchy != "" && hierarchy != t.cpu {
			do(k, below(hierarchy, group))
		}
	}
}

// Inode is the identity of a group.
func (t *Tree) Inode(group string) (uint64, error) { return t.fs.Inode(t.Dir(group)) }

// Links is the identity of a group, and how many groups are in it; -1: not known without listing them.
func (t *Tree) Links(group string) (inode uint64, groups int, err error) {
	return t.links(t.Dir(group))
}

func (t *Tree) links(dir string) (inode uint64, groups int, err error) {
	if counts, ok := t.fs.(interface {
		Links(name string) (uint64, int, error)
	}); ok {
		return counts.Links(dir)
	}
	inode, err = t.fs.Inode(dir)
	return inode, -1, err
}

// Owner is the user whom a group belongs to: root where that is not known. Another one may make groups in it
// (Documentation/admin-guide/cgroup-v2.rst, Delegation).
func (t *Tree) Owner(group string) (uid uint32) {
	if owned, ok := t.fs.(interface {
		Owner(name string) (uint32, error)
	}); ok {
		uid, _ = owned.Owner(t.Dir(group)) // one that is gone has no groups in it
	}
	return uid
}

// below is the directory of a group in a hierarchy: path.Join, with one allocation, as is fileBelow. A look at a
// thousand pods makes ten thousand names.
func below(hierarchy, group string) string {
	if !strings.HasPrefix(group, "/") {
		return path.Join(".", hierarchy, group)
	}
	return path.Clean(strings.TrimLeft(hierarchy+group, "/"))
}

func fileBelow(hierarchy, group, name string) string {
	if !strings.HasPrefix(group, "/") {
		return path.Join(hierarchy, group, name)
	}
	return path.Clean(strings.TrimLeft(hierarchy+group+"/"+name, "/"))
}

// childOf is the path of a group directly below another one.
func childOf(group, name string) string {
	if group == "/" {
		return group + name
	}
	return group + "/" + name
}
