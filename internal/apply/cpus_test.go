package apply

import (
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
	fs := withCPUs{n.k, map[string]cpu.Set{}}
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
	machine := v2
	machine.CPUSets, machine.CPUs = true, 4
	n := newNode(t, machine)
	n.k.SetLoad("/pod/a", sim.Spin(1))
	n.do(n.change("/pod", plan.CPUs, "1"), plan.Applied)
	n.do(n.change("/free", plan.CPUs, "2"), plan.Applied) // where nothing runs
	n.wantOutcomes(n.w.Restore(nil, false), "/free cpus applied ", "/pod cpus clamped 0-3")
	for group, want := range map[string]string{"/pod": "0-3", "/free": ""} {
		if cpus, err := n.tree.CPUs(group); err != nil || cpus.String() != want {
			t.Errorf("%s is bound to %q (%v), want %q", group, cpus, err, want)
		}
	}
	n.wantIdempotent()
}
