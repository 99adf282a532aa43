package cgrouptest

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
)

// Bindable puts the group into the hierarchy of the cpuset controller where that is one of its own (v1), with its
// parent's CPUs, as runtimes do. The parent comes first.
func (g *Group) Bindable() {
	g.t.Helper()
	if !g.tree.HasCPUSets() {
		Skip(g.t, "there is no cpuset controller")
	}
	if g.tree.Version() == cgroup.V2 {
		return
	}
	if err := g.tree.MakeCPUSet(g.Path); err != nil {
		g.t.Fatal(err)
	}
	g.cpuset = path.Join("cpuset", g.Path)
	if err := g.tree.InheritCPUSet(g.Path); err != nil {
		g.t.Fatal(err)
	}
}

// dirs are the group's directories in all hierarchies that it is in.
func (g *Group) dirs() []string {
	list := []string{g.tree.Dir(g.Path), g.acct, g.cpuset}
	return slices.DeleteFunc(list, func(dir string) bool { return dir == "" })
}

// Affinity is the CPUs that the process may run on.
func (p *Process) Affinity() (cpu.Set, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(p.PID(), &mask); err != nil {
		return nil, err
	}
	var set cpu.Set
	for n := 0; len(set) < mask.Count(); n++ {
		if mask.IsSet(n) {
			set = append(set, n)
		}
	}
	return set, nil
}
