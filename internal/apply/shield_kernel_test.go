package apply

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/task"
	"plimsoll/internal/workload"
)

// shielded is a group that is taken for the root, with two tasks in it, and a third that is bound to a CPU.
type shielded struct {
	*realPod
	free  []*cgrouptest.Process
	bound *cgrouptest.Process
}

// TestKernelShield: free tasks are moved and confined, one that is bound stays; after a crash, with and without a
// journal, all are in the root and may run where they could.
func TestKernelShield(t *testing.T) {
	for name, keep := range map[string]bool{"journal": true, "no journal": false} {
		t.Run(name, func(t *testing.T) { testShield(t, keep) })
	}
}

func testShield(t *testing.T, keep bool) {
	g := cgrouptest.New(t)
	g.Bindable()
	s := shielded{realPod: &realPod{t: t, pod: g, tree: g.Tree()}, free: []*cgrouptest.Process{g.Idle(), g.Idle()},
		bound: g.Idle()}
	w := s.shielder(t.TempDir())
	if s.tree.Version() == cgroup.V2 {
		if _, err := w.Shield(); err == nil {
			t.Error("a shield on v2")
		}
		return
	}
	var one unix.CPUSet
	one.Set(0)
	s.must(unix.SchedSetaffinity(s.bound.PID(), &one))
	before := s.affinity(s.free[0])
	dir := t.TempDir()
	w = s.shielder(dir)
	made, err := w.Shield()
	s.must(err)
	if !made.New || made.Tasks != 2 || !slices.Equal(s.in(g.Path), []int{s.bound.PID()}) {
		t.Errorf("%+v; in the root: %v", made, s.in(g.Path))
	}
	inode, err := s.tree.CPUSetInode(made.Group)
	s.must(err)
	s.wantOutcomes(w.Do([]plan.Change{{Cgroup: workload.ID{Path: made.Group, Inode: inode}, Knob: plan.CPUs,
		From: plan.Value(before), To: "0"}}), plan.Applied)
	late := g.Idle()
	if again, err := w.Shield(); err != nil || again.New || again.Tasks != 3 || s.affinity(late) != "0" ||
		s.affinity(s.free[0]) != "0" {
		t.Errorf("%+v (%v); they may run on %s and %s", again, err, s.affinity(late), s.affinity(s.free[0]))
	}
	late.Stop()
	if left, there := s.shielder(t.TempDir()).Shielded(); !there || left != (Shield{Group: made.Group, Tasks: 2}) {
		t.Errorf("left behind: %+v %v", left, there)
	}
	want := []plan.Outcome{plan.Applied, plan.Applied}
	if !keep {
		dir, want = t.TempDir(), want[:1]
	}
	s.wantOutcomes(s.shielder(dir).Restore(nil, false), want...)
	for _, p := range append(s.free, s.bound) {
		if !slices.Contains(s.in(g.Path), p.PID()) {
			t.Errorf("%d is not in the root", p.PID())
		}
	}
	if got := s.affinity(s.free[1]); got != before || s.affinity(s.bound) != "0" {
		t.Errorf("they may run on %s, before: %s; and on %s, before: 0", got, before, s.affinity(s.bound))
	}
	if left, there := w.Shielded(); there {
		t.Errorf("the group is still there: %+v", left)
	}
}

// shielder is the writer of an agent that begins with this journal.
func (s *shielded) shielder(dir string) *Writer {
	j, err := journal.Open(dir, "boot", time.Now)
	s.must(err)
	s.t.Cleanup(func() { j.Close() })
	w := New(s.tree, j, time.Now)
	w.Tasks, w.Root = &task.Kernel{}, s.pod.Path
	return w
}

func (s *shielded) in(group string) []int {
	tids, err := s.tree.CPUSetThreads(group)
	s.must(err)
	return tids
}

func (s *shielded) affinity(p *cgrouptest.Process) string {
	set, err := p.Affinity()
	s.must(err)
	return set.String()
}
