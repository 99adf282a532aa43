package cgroup

import (
	"errors"
	"io/fs"
	"slices"
)

// HidesTasks says whether every group except the caller's looks empty, because its tasks are hidden. On v1 the files
// that list tasks name only tasks of the reader's PID namespace (kernel/cgroup/cgroup-v1.c, pidlist_array_load). The
// caller says whether it runs in the first PID namespace, in which all tasks are visible. v2 reports without task
// numbers whether a group is populated.
func (t *Tree) HidesTasks(self int) (bool, error) {
	if t.version == V2 {
		return false, nil
	}
	others, err := t.showsTasks("/", self)
	return !others, err
}

// showsTasks says whether a task is seen in the group or below it, in a group that self is not in.
func (t *Tree) showsTasks(group string, self int) (bool, error) {
	tasks, err := t.Tasks(group)
	if errors.Is(err, fs.ErrNotExist) { // it is gone
		return false, nil
	}
	if err != nil {
		return false, err
	}
	seen := slices.ContainsFunc(tasks, func(tid int) bool { return tid > 0 })
	if seen && !slices.Contains(tasks, self) {
		return true, nil
	}
	children, err := t.Children(group)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, c := range children {
		if shows, err := t.showsTasks(c, self); shows || err != nil {
			return shows, err
		}
	}
	return false, nil
}
