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

// TestKernelNoCPUsAgain: a group with tasks does not take an empty list back, and has all CPUs after a restore.
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
	if err := p.tree.SetCPUs(g.Path, cpu.Set{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("no CPUs: %v, want ENOSPC", err)
	}
	outcome := plan.Applied
	if p.tree.Version() == cgroup.V2 { // where it inherited before
		outcome = plan.Clamped
		before, err = p.tree.EffectiveCPUs("/")
		p.must(err)
	}
	p.wantOutcomes(w.Restore(nil, false), outcome)
	if after, err := p.tree.CPUs(g.Path); err != nil || !after.Equal(before) {
		t.Errorf("CPUs %s (%v), want %s", after, err, before)
	}
}
