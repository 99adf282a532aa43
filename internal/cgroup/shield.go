package cgroup

import (
	"path"
	"strconv"
)

// CPUSetsApart says whether the cpuset controller has a hierarchy that no cpu controller shares (v1): there a task can
// be moved, and nothing but its CPUs changes with it.
func (t *Tree) CPUSetsSeparate() bool {
	if t.version != V1 || t.cpuset == "" {
		return false
	}
	_, err := t.fs.Inode(path.Join(t.cpuset, "cpu.shares"))
	return err != nil
}

// MakeCPUSet makes a group in the cpuset hierarchy. It has nothing yet (v1).
func (t *Tree) MakeCPUSet(group string) error {
	m, ok := t.fs.(maker)
	if !ok {
		return errCannotMake
	}
	return m.Mkdir(t.cpusetDir(group))
}

// InheritCPUSet gives a group the memory nodes and CPUs of its parent (v1).
func (t *Tree) InheritCPUSet(group string) error {
	for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
		data, err := t.fs.ReadFile(path.Join(t.cpusetDir(path.Dir(group)), file))
		if err == nil {
			err = t.fs.WriteFile(path.Join(t.cpusetDir(group), file), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveCPUSet removes an empty group of the cpuset hierarchy.
func (t *Tree) RemoveCPUSet(group string) error {
	m, ok := t.fs.(maker)
	if !ok {
		return errCannotMake
	}
	return m.Rmdir(t.cpusetDir(group))
}

// CPUSetThreads lists the threads of a group itself in the cpuset hierarchy (v1).
func (t *Tree) CPUSetThreads(group string) ([]int, error) {
	data, err := t.fs.ReadFile(path.Join(t.cpusetDir(group), "tasks"))
	if err != nil {
		return nil, err
	}
	return parsePIDs(data)
}

// MoveCPUSetThread moves one thread, and none of the others of its process, to a group of the cpuset hierarchy (v1).
func (t *Tree) MoveCPUSetThread(group string, tid int) error {
	return t.fs.WriteFile(path.Join(t.cpusetDir(group), "tasks"), []byte(strconv.Itoa(tid)))
}
