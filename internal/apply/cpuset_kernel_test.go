package apply

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/workload"
)

// TestKernelNoCPUsAgain: before 7.0 a group with tasks does not take an empty list back, and has all CPUs after a
// restore, those too that come online after it. From 7.0 on, with cgroup v2,
// it takes the empty list and inherits again.
func TestKernelNoCPUsAgain(t *testing.T) {
	g := cgrouptest.New(t)
	g.Bindable()
	g.Idle()
	p := &realPod{t: t, pod: g, tree: g.Tree()}
	w, _ := p.writer(t.TempDir())
	possible, err := sysfs.NewHost("/").Possible()
	p.must(err)
	w.Possible = possible
	before, err := p.tree.CPUs(g.Path)
	p.must(err)
	inode, err := p.tree.CPUSetInode(g.Path)
	p.must(err)
	p.wantOutcomes(w.Do([]plan.Change{{Cgroup: workload.ID{Path: g.Path, Inode: inode}, Knob: plan.CPUs,
		From: plan.Value(before.String()),
		To:   "0", Why: "test"}}), plan.Applied)
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
		outcome, before = plan.Clamped, possible
	}
	plug := func(string) {}
	if os.Getenv("PLIMSOLL_EMULATED") != "" && p.tree.Version() == cgroup.V2 {
		last := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", possible[len(possible)-1])
		plug = func(text string) { p.must(os.WriteFile(last, []byte(text), 0o600)) }
	}
	plug("0")
	p.wantOutcomes(w.Restore(nil, false), outcome)
	plug("1")
	all, err := p.tree.EffectiveCPUs("/")
	p.must(err)
	if has, err := p.tree.EffectiveCPUs(g.Path); err != nil || !has.Equal(all) || len(all) < 2 {
		t.Errorf("the group may use %s (%v), want %s", has, err, all)
	}
	if after, err := p.tree.CPUs(g.Path); err != nil || !after.Equal(before) {
		t.Errorf("CPUs %s (%v), want %s", after, err, before)
	}
}
