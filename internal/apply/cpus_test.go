package apply

import (
	"fmt"
	"path"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
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

// TestCPUsNoneAgain: a group had no list of CPUs, and the kernel does not take that back while tasks are in it. It has
// all CPUs then, those too that come online later, where it is known which may.
func TestCPUsNoneAgain(t *testing.T) {
	for possible, want := range map[string]string{"": "0-3", "0-7": "0-7"} {
		machine := v2
		machine.CPUSets, machine.CPUs, machine.PossibleCPUs = true, 4, 8
		n := newNode(t, machine)
		all, err := cpu.ParseSet(possible)
		n.must(err)
		n.w.Possible = all
		n.k.SetLoad("/pod/a", sim.Spin(1))
		n.do(n.change("/pod", plan.CPUs, "1"), plan.Applied)
		n.do(n.change("/free", plan.CPUs, "2"), plan.Applied) // where nothing runs
		n.wantOutcomes(n.w.Restore(nil, false), "/free cpus applied ", "/pod cpus clamped "+want)
		for group, want := range map[string]string{"/pod": want, "/free": ""} {
			if cpus, err := n.tree.CPUs(group); err != nil || cpus.String() != want {
				t.Errorf("%s is bound to %q (%v), want %q", group, cpus, err, want)
			}
		}
		n.wantIdempotent()
	}
}

// walled is a machine whose root lacks CPUs that are in partitions, which package sim has not.
type walled struct{ *sim.Kernel }

func (f walled) ReadFile(name string) ([]byte, error) {
	if name == "cpuset.cpus.effective" {
		return []byte("0-1\n"), nil
	}
	return f.Kernel.ReadFile(name)
}

// TestCPUsNoneAgainBesidePartitions: the CPUs of another program's partition are not among all CPUs, also where a group
// passes them down together with ours. Ours are, and those that come online later.
func TestCPUsNoneAgainBesidePartitions(t *testing.T) {
	machine := v2
	machine.CPUSets, machine.CPUs, machine.PossibleCPUs = true, 4, 8
	n := newNode(t, machine)
	tree, err := cgroup.Detect(walled{n.k})
	n.must(err)
	n.tree, n.w = tree, New(tree, n.j, n.k.Now)
	n.w.Possible = cpu.Set{0, 1, 2, 3, 4, 5, 6, 7}
	n.w.Online = func() (cpu.Set, error) { return n.w.Possible[:4], nil }
	n.must(n.w.Adopt(n.id("/pod/b"), plan.Exclusive, "2-3", "3"))
	n.k.SetLoad("/pod/a", sim.Spin(1))
	n.do(n.change("/pod", plan.CPUs, "1"), plan.Applied)
	ofCPUs := func(e journal.Entry) bool { return e.Knob == plan.CPUs }
	n.wantOutcomes(n.w.Restore(ofCPUs, false), "/pod cpus clamped 0-2,4-7")
}

// TestExclusiveCPUsAreSwapped: a group passes new CPUs down once its siblings have left them.
func TestExclusiveCPUsAreSwapped(t *testing.T) {
	w := newNode(t, v2).w
	for to, want := range map[plan.Value][]string{
		"1-2": {"/k exclusive 0-1 to 1", "/s cpus 2-4 to 3-4", "/k exclusive 1 to 1-2"},
		"2":   {"/k exclusive 0-1 to ", "/s cpus 2-4 to 3-4", "/k exclusive  to 2"},
		"0":   {"/k exclusive 0-1 to 0", "/s cpus 2-4 to 3-4"},
		"0-2": {"/s cpus 2-4 to 3-4", "/k exclusive 0-1 to 0-2"},
	} {
		steps := w.steps(plan.Change{Cgroup: workload.ID{Path: "/k"}, Knob: plan.Exclusive, From: "0-1", To: to})
		steps = append(steps, w.steps(plan.Change{Cgroup: workload.ID{Path: "/s"}, Knob: plan.CPUs, From: "2-4",
			To: "3-4"})...)
		plan.Order(steps)
		var got []string
		for _, c := range steps {
			got = append(got, fmt.Sprintf("%s %s %s to %s", c.Cgroup.Path, c.Knob, c.From, c.To))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", to, diff)
		}
	}
}

// TestCPUsLost: a group whose parent has lost a CPU gets back what the parent has (v1), by a plan and by a restore.
func TestCPUsLost(t *testing.T) {
	machine := v1
	machine.CPUSets, machine.CPUs = true, 4
	for name, back := range map[string]func(n *node, c plan.Change) []plan.Result{
		"plan":    func(n *node, c plan.Change) []plan.Result { return n.w.Do([]plan.Change{c}) },
		"restore": func(n *node, _ plan.Change) []plan.Result { return n.w.Restore(nil, false) },
	} {
		n := newNode(t, machine)
		c := n.change("/pod/a", plan.CPUs, "0-1")
		var err error
		c.Cgroup.Inode, err = n.tree.CPUSetInode("/pod/a")
		n.must(err)
		n.do(c, plan.Applied)
		for _, group := range []string{"/pod/b", "/pod"} { // as the kernel does when CPU 3 goes offline
			n.must(n.k.ForeignWrite("cpuset"+group+"/cpuset.cpus", "0-2"))
		}
		c.From, c.To, c.Restore = "0-1", "0-3", true
		n.wantOutcomes(back(n, c), "/pod/a cpus applied 0-2")
		if left := n.j.Entries(); len(left) > 0 {
			t.Errorf("%s: in the journal %v", name, left)
		}
	}
}

// handing adds the root's cgroup.subtree_control, which package sim has not. To hand the controller on no more unbinds
// all groups.
type handing struct {
	*sim.Kernel
	on *bool
}

func (f handing) ReadFile(name string) ([]byte, error) {
	if name == "cgroup.subtree_control" {
		return []byte(map[bool]string{true: "cpuset cpu\n", false: "cpu\n"}[*f.on]), nil
	}
	return f.Kernel.ReadFile(name)
}

func (f handing) WriteFile(name string, data []byte) error {
	if name != "cgroup.subtree_control" {
		return f.Kernel.WriteFile(name, data)
	}
	*f.on = string(data) == "+cpuset"
	for _, group := range []string{"pod", "free"} {
		if err := f.ForeignWrite(group+"/cpuset.cpus", "\n"); err != nil && !*f.on {
			return err
		}
	}
	return nil
}

// TestHandedOnAndUsed: the cpuset controller stays handed on where another program has bound a group meanwhile, and
// else is not any more, though a group holds a list of ours or of all CPUs.
func TestHandedOnAndUsed(t *testing.T) {
	machine := v2
	machine.CPUSets, machine.CPUs, machine.InheritsAgain = true, 4, true
	for cpus, used := range map[string]bool{"1-2": true, "0-3": false, "0-7": false, "": false} {
		machine.PossibleCPUs = 8
		n := newNode(t, machine)
		fs := handing{n.k, new(bool)}
		tree, err := cgroup.Detect(fs)
		n.must(err)
		n.tree, n.w = tree, New(tree, n.j, n.k.Now)
		n.do(n.change("/", plan.SubtreeControl, "1"), plan.Applied)
		n.do(n.change("/pod", plan.CPUs, "0"), plan.Applied)
		n.must(n.k.ForeignWrite("free/cpuset.cpus", cpus+"\n"))
		back := n.change("/", plan.SubtreeControl, "0")
		back.Restore = true
		n.do(back, map[bool]plan.Outcome{true: plan.Skipped, false: plan.Applied}[used])
		_, claimed := n.j.Entry(back.Cgroup, plan.SubtreeControl)
		if got, err := n.tree.CPUs("/free"); err != nil || *fs.on != used || claimed || used && got.String() != cpus {
			t.Errorf("%q: handed on %v, /free has %q (%v), in the journal %v", cpus, *fs.on, got, err, claimed)
		}
	}
}

// confine binds the pod to some CPUs, as v1 wants it: from below.
func (n *node) confine(cpus plan.Value) {
	n.t.Helper()
	for _, g := range []string{"/pod/a", "/pod/b", "/pod"} {
		inode, err := n.tree.CPUSetInode(g)
		n.must(err)
		c := n.change(g, plan.CPUs, cpus)
		c.Cgroup.Inode = inode
		n.do(c, plan.Applied)
	}
}

// TestHeirs: whatever happens at a restore's writes, a group that copied its parent's CPUs while they were ours gets
// all that its parent gets.
func TestHeirs(t *testing.T) {
	machine := v1
	machine.CPUSets, machine.CPUs = true, 4
	groups := []string{"/pod", "/pod/a", "/pod/b", "/pod/heir", "/pod/heir/deep"}
	for _, m := range mishaps() {
		if m.name == "vanish" || m.name == "recreate" || m.name == "trample" {
			continue // which take the value away that is to come back
		}
		for at := range 2 * len(groups) {
			n := newNode(t, machine)
			n.confine("0-1")
			n.k.AddGroup("/pod/heir")
			n.k.AddGroup("/pod/heir/deep")
			n.inject(m, at+1)
			n.restore()
			n.k.Fault = nil
			n.restore()
			for _, g := range groups {
				if cpus, err := n.tree.CPUs(g); err != nil || cpus.String() != "0-3" {
					t.Errorf("%s at write %d: %s is bound to %q (%v)", m.name, at+1, g, cpus, err)
				}
			}
		}
	}
}

// TestHeirsAtOnce: an heir that is refused once is tried again in the same restore.
func TestHeirsAtOnce(t *testing.T) {
	machine := v1
	machine.CPUSets, machine.CPUs = true, 4
	n := newNode(t, machine)
	n.confine("0-1")
	n.k.AddGroup("/pod/heir")
	refused := false
	n.k.Fault = func(op, name string, _ []byte) error {
		if op == "write" && !refused && path.Base(path.Dir(name)) == "heir" {
			refused = true
			return syscall.EBUSY
		}
		return nil
	}
	n.w.Restore(nil, false)
	if cpus, err := n.tree.CPUs("/pod/heir"); err != nil || cpus.String() != "0-3" || !refused {
		t.Errorf("bound to %q (%v), refused %v", cpus, err, refused)
	}
}
