package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"plimsoll/internal/cpu"
)

// CPUSet is one group of the hierarchy that has the cpuset controller. That is another one than the cpu controller's
// on v1: a group may be in one of them only.
type CPUSet struct {
	Path  string
	Inode uint64
	CPUs  cpu.Set // empty: inherited from the parent (v2), or a group without tasks (v1)
}

// HasCPUSets says whether there is a cpuset controller at all.
func (t *Tree) HasCPUSets() bool {
	if t.version == V1 {
		return t.cpuset != ""
	}
	data, err := t.read("/", "cgroup.controllers")
	return err == nil && containsWord(string(data), "cpuset")
}

// CPUSets lists all groups below one that have CPUs, parents before children.
func (t *Tree) CPUSets(group string) ([]CPUSet, error) {
	var list []CPUSet
	err := t.walkCPUSets(group, &list)
	return list, err
}

func (t *Tree) walkCPUSets(group string, list *[]CPUSet) error {
	names, err := t.fs.Dirs(t.cpusetDir(group))
	if err != nil {
		return err
	}
	for _, name := range names {
		child := childOf(group, name)
		cpus, err := t.CPUs(child)
		if err == nil {
			var inode uint64
			var groups int
			if inode, groups, err = t.links(t.cpusetDir(child)); err == nil {
				*list = append(*list, CPUSet{child, inode, cpus})
				if groups != 0 {
					err = t.walkCPUSets(child, list)
				}
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is gone, or has not the controller
			return err
		}
	}
	return nil
}

func (t *Tree) cpusetDir(group string) string { return below(t.cpuset, group) }

// CPUSetInode is the identity of a group in the hierarchy that has the cpuset controller.
func (t *Tree) CPUSetInode(group string) (uint64, error) { return t.fs.Inode(t.cpusetDir(group)) }

// CPUs reads the CPUs that the group is bound to; empty where it inherits (v2).
func (t *Tree) CPUs(group string) (cpu.Set, error) {
	return t.readCPUs(t.cpusFile(group))
}

// AllowedCPUs are those of the nearest group, from this one up, that is bound to some; where none is,
// all that are online.
func (t *Tree) AllowedCPUs(group string, online cpu.Set) cpu.Set {
	for ; group != "/" && group != "."; group = path.Dir(group) {
		if set, err := t.CPUs(group); err == nil && len(set) > 0 {
			return set.And(online)
		}
	}
	return online
}

func (t *Tree) readCPUs(name string) (cpu.Set, error) {
	data, err := t.fs.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text, err := line(data)
	if err == nil {
		var set cpu.Set
		if set, err = cpu.ParseSet(text); err == nil {
			return set, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

// SetCPUs binds the group to a set of CPUs.
func (t *Tree) SetCPUs(group string, set cpu.Set) error {
	// The newline matters: the kernel ignores a write of zero bytes, and the empty set on v2 would be one.
	return t.fs.WriteFile(t.cpusFile(group), []byte(set.String()+"\n"))
}

func (t *Tree) cpusFile(group string) string { return fileBelow(t.cpuset, group, "cpuset.cpus") }

// EffectiveCPUs reads the CPUs that tasks of the group may use now.
func (t *Tree) EffectiveCPUs(group string) (cpu.Set, error) {
	name := "cpuset.cpus.effective"
	if t.version == V1 {
		name = "cpuset.effective_cpus"
	}
	return t.readCPUs(path.Join(t.cpusetDir(group), name))
}

// ExclusiveCPUs reads what a group's partition may take of its parent (v2, 6.7+).
func (t *Tree) ExclusiveCPUs(group string) (cpu.Set, error) {
	return t.readCPUs(path.Join(t.cpusetDir(group), "cpuset.cpus.exclusive"))
}

// SetExclusiveCPUs writes it.
func (t *Tree) SetExclusiveCPUs(group string, set cpu.Set) error {
	return t.fs.WriteFile(path.Join(t.cpusetDir(group), "cpuset.cpus.exclusive"), []byte(set.String()+"\n"))
}

// Partition reads whether a group is a partition: member (it is none), root or isolated, and why it is not valid where
// the kernel says "root invalid (reason)".
func (t *Tree) Partition(group string) (kind, invalid string, err error) {
	text, err := readValue(t, group, "cpuset.cpus.partition", func(text string) (string, error) { return text, nil })
	kind, reason, bad := strings.Cut(text, " invalid")
	if bad {
		invalid = strings.Trim(reason, " ()")
		if invalid == "" {
			invalid = "no reason given"
		}
	}
	return kind, invalid, err
}

// SetPartition writes it.
func (t *Tree) SetPartition(group, kind string) error {
	return t.write(group, "cpuset.cpus.partition", kind)
}

// CPUSetsEnabled says whether the cpuset controller is enabled for the children of a group (cgroup.subtree_control). On
// v1 every child has it.
func (t *Tree) CPUSetsEnabled(group string) (bool, error) {
	if t.version == V1 {
		return true, nil
	}
	data, err := t.read(group, "cgroup.subtree_control")
	return containsWord(string(data), "cpuset"), err
}

// EnableCPUSets enables the cpuset controller for the children of a group, or disables it.
func (t *Tree) EnableCPUSets(group string, on bool) error {
	text := "-cpuset"
	if on {
		text = "+cpuset"
	}
	return t.write(group, "cgroup.subtree_control", text)
}

// CPUSetTasks lists the processes of a group itself in the hierarchy that has the cpuset controller.
func (t *Tree) CPUSetTasks(group string) ([]int, error) {
	name := path.Join(t.cpusetDir(group), "cgroup.procs")
	data, err := t.fs.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parsePIDs(data)
}
