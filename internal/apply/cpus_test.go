package apply

import (
	"os"
	"path"
	"slices"
	"syscall"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
)

// withCPUs adds cpuset.cpus, which package sim has not, to its groups. As on v1, no child has a CPU that its parent
// has not.
type withCPUs struct {
	*sim.Kernel
	cpus map[string]cpu.Set // by file name
	busy bool               // tasks are in all groups: none takes an empty list
}

func (f withCPUs) ReadFile(name string) ([]byte, error) {
	if set, ok := f.cpus[name]; ok {
		return []byte(set.String() + "\n"), nil
	}
	return f.Kernel.ReadFile(name)
}

func (f withCPUs) WriteFile(name string, data []byte) error {
	if _, ok := f.cpus[name]; !ok {
		return f.Kernel.WriteFile(name, data)
	}
	set, err := cpu.ParseSet(string(data))
	if err != nil {
		return err
	}
	if f.busy && len(set) == 0 {
		return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	for other, theirs := range f.cpus {
		parent, child := set, theirs
		if path.Dir(path.Dir(name)) == path.Dir(other) {
			parent, child = theirs, set
		} else if path.Dir(path.Dir(other)) != path.Dir(name) {
			continue
		}
		for _, c := range child {
			if !slices.Contains(parent, c) {
				return syscall.EBUSY
			}
		}
	}
	f.cpus[name] = set
	return nil
}

// TestCPUs: a chain of groups was narrowed, deepest first, and must be widened parents first. No order of the plan
// knows that; to try again does.
func TestCPUs(t *testing.T) {
	n := newNode(t, v2)
	n.k.AddGroup("/pod/a/deep")
	fs := withCPUs{n.k, map[string]cpu.Set{}, false}
	groups := []string{"/pod/a/deep", "/pod/a", "/pod"}
	for _, g := range groups {
		fs.cpus[path.Join(n.tree.Dir(g), "cpuset.cpus")] = cpu.Set{0, 1, 2, 3}
	}
	tree, err := cgroup.Detect(fs)
	n.must(err)
	n.tree, n.w = tree, New(tree, n.j, n.k.Now)
	for _, g := range groups {
		n.do(n.change(g, plan.CPUs, "0,1"), plan.Applied)
	}
	n.do(n.change("/pod", plan.CPUs, "0-1"), plan.Skipped) // spelled otherwise
	n.wantOutcomes(n.w.Restore(nil, false),
		"/pod cpus applied 0-3", "/pod/a cpus applied 0-3", "/pod/a/deep cpus applied 0-3")
	n.wantIdempotent()
}

// TestCPUsNoneAgain: a group had no CPUs of its own, and the kernel does not take that back while tasks are in it.
func TestCPUsNoneAgain(t *testing.T) {
	n := newNode(t, v2)
	name, all := path.Join(n.tree.Dir("/pod"), "cpuset.cpus"), cpu.Set{0, 1, 2, 3}
	fs := withCPUs{n.k, map[string]cpu.Set{name: nil, "cpuset.cpus.effective": all}, true}
	tree, err := cgroup.Detect(fs)
	n.must(err)
	n.tree, n.w = tree, New(tree, n.j, n.k.Now)
	n.do(n.change("/pod", plan.CPUs, "1"), plan.Applied)
	n.wantOutcomes(n.w.Restore(nil, false), "/pod cpus clamped "+all.String())
	if !fs.cpus[name].Equal(all) {
		t.Errorf("bound to %s, want all: %s", fs.cpus[name], all)
	}
	n.wantIdempotent()
}
