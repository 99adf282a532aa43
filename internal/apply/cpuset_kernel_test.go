package apply

import (
	"errors"
	"syscall"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestKernelNoCPUsAgain: before 7.0 a group with tasks does not take an empty list back, and has all CPUs after a
// restore. From 7.0 on, with cgroup v2, it takes the empty list and inherits again.
func TestKernelNoCPUsAgain(t *testing.T) {
	g := cgrouptest.New(t)
	g.Bindable()
	g.Idle()
	p := &realPod{t: t, pod: g, tree: g.Tree()}
	w, _ := p.writer(t.TempDir())
	before, err := p.tree.CPUs(g.Path)
	p.must(err)
	inode, err := p.tree.CPUSetInode(g.Path)
	p.must(err)
	p.wantOutcomes(w.Do([]plan.Change{{Cgroup: workload.ID{Path: g.Path, Inode: inode}, Knob: plan.CPUs, From: plan.Value(before.String()),
		To: "0", Why: "test"}}), plan.Applied)
	takes := p.tree.Version() == cgroup.V2 && cgrouptest.AtLeast(cgrouptest.Release(t), "7.0")
	switch err := p.tree.SetCPUs(g.Path, cpu.Set{}); {
	case takes:
		p.must(err)
		p.must(p.tree.SetCPUs(g.Path, cpu.Set{0})) // ours again
	case !errors.Is(err, syscall.ENOSPC):
		t.Errorf("no CPUs: %v, want ENOSPC", err)
	}
	outcome := plan.Applied
	if p.tree.Version() == cgroup.V2 && !takes { // where it inherited before
		outcome = plan.Clamped
		before, err = p.tree.EffectiveCPUs("/")
		p.must(err)
	}
	p.wantOutcomes(w.Restore(nil, false), outcome)
	if after, err := p.tree.CPUs(g.Path); err != nil || !after.Equal(before) {
		t.Errorf("CPUs %s (%v), want %s", after, err, before)
	}
}
