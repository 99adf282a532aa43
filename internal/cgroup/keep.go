package cgroup

import "path"

// keeper is an FS that can keep files open.
type keeper interface {
	KeepOnly(most int)
	Hold(dir string)
	Release(dir string)
	Forget(dir string)
}

// KeepOnly has the FS, if it can, keep files open only of groups that are held, and at most so many.
func (t *Tree) KeepOnly(most int) {
	if k, ok := t.fs.(keeper); ok {
		k.KeepOnly(most)
	}
}

// Hold keeps the files of a group open that are read or written from now on. It is for a group that is read often.
func (t *Tree) Hold(group string) { t.keep(group, keeper.Hold) }

// Release is for a group that is read seldom. The file that a refill writes stays open, if it was written before.
func (t *Tree) Release(group string) { t.keep(group, keeper.Release) }

// Forget lets go of what the FS keeps open for a group, if it keeps anything: the group is gone, or of no interest.
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
