package cgroup

import "path"

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

// KeepOpen keeps the files of a group open that are read or written from now on, for a group that is read often.
func (t *Tree) KeepOpen(group string) { t.keep(group, keeper.KeepOpen) }

// CloseFiles closes the files of a group that is read rarely, except the one that a refill writes.
func (t *Tree) CloseFiles(group string) { t.keep(group, keeper.CloseFiles) }

// Forget closes all files of a group and undoes KeepOpen: the group is gone, or of no interest.
func (t *Tree) Forget(group string) { t.keep(group, keeper.Forget) }

func (t *Tree) keep(group string, do func(keeper, string)) {
	k, ok := t.fs.(keeper)
	if !ok {
		return
	}
	do(k, t.Dir(group))
	for _, hierarchy := range []string{t.acct, t.cpuset} {
		if t.version == V1 && hierarchy != "" && hierarchy != t.cpu {
			do(k, path.Join(hierarchy, group))
		}
	}
}
