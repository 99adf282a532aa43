package apply

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// CPUs have three peculiarities on v1. The groups of the cpuset controller are another hierarchy's, with inodes of their
// own. When a CPU goes offline the kernel takes it out of cpuset.cpus for good, and nobody has written
// (kernel/cgroup/cpuset-v1.c, cpuset1_hotplug_update_tasks). And a group begins without CPUs, so that whoever makes one
// copies its parent's, which may be ours: a group that inherits it is in no journal, and is widened with its parent.

// ofCPUSet says whether a knob is the cpuset controller's.
func ofCPUSet(knob plan.Knob) bool {
	return knob == plan.CPUs || knob == plan.Exclusive || knob == plan.Partition
}

// inode is the identity of a group in the hierarchy that has the knob.
func (w *Writer) inode(group string, knob plan.Knob) (uint64, error) {
	if ofCPUSet(knob) {
		return w.tree.CPUSetInode(group)
	}
	return w.tree.Inode(group)
}

// setPartition writes cpuset.cpus.partition. The kernel takes a partition that it cannot make, and calls it invalid: that
// is taken back, for an invalid one becomes valid at any later time.
func setPartition(tree *cgroup.Tree, group string, kind plan.Value) error {
	before, _, err := tree.Partition(group)
	if err != nil {
		return err
	}
	if err := tree.SetPartition(group, string(kind)); err != nil {
		return err
	}
	_, invalid, err := tree.Partition(group)
	if err != nil || invalid == "" {
		return err
	}
	return errors.Join(fmt.Errorf("the kernel cannot make the partition: %s", invalid), tree.SetPartition(group, before))
}

// shrunk says whether CPUs that went offline were taken by the kernel out of a value of ours, be it all of them: no other
// writer can empty a group that has processes (validate_change).
func (w *Writer) shrunk(e journal.Entry, held plan.Value) bool {
	if e.Knob != plan.CPUs || w.tree.Version() != cgroup.V1 || !e.Written() {
		return false
	}
	return held.Within(e.Last) || e.Ours(e.Prev) && held.Within(e.Prev)
}

// attainable is what of a value can be restored below a group: on v1 the kernel refuses CPUs that the group has not. The root has
// not those that are offline, and any other may have lost them.
func (w *Writer) attainable(knob plan.Knob, v plan.Value, group string) plan.Value {
	if knob != plan.CPUs || w.tree.Version() != cgroup.V1 {
		return v
	}
	has, err1 := w.tree.CPUs(group)
	want, err2 := cpu.ParseSet(string(v))
	if some := want.And(has); err1 == nil && err2 == nil && len(some) > 0 {
		return plan.Value(some.String())
	}
	return v
}

// steps is one change; of CPUs on v1 it is one by way of all of before and after where some are added and some taken, so that
// neither parents nor children are in the way.
func (w *Writer) steps(c plan.Change) []plan.Change {
	if c.Knob != plan.CPUs || w.tree.Version() != cgroup.V1 {
		return []plan.Change{c}
	}
	if c.Restore {
		c.To = w.attainable(c.Knob, c.To, "/")
	}
	live := w.attainable(c.Knob, c.From, "/") // the kernel, that is about to take the others out, refuses them
	a, err1 := cpu.ParseSet(string(live))
	b, err2 := cpu.ParseSet(string(c.To))
	if err1 != nil || err2 != nil || a.Within(b) || c.To.Within(c.From) {
		return []plan.Change{c}
	}
	first, last := c, c
	first.To, first.Restore = plan.Value(a.Union(b).String()), false
	last.From = first.To
	return []plan.Change{first, last}
}

// inUse says of the cpuset controller that another program has bound a group to which it was handed on because of us. Not to
// hand it on any more would unbind that group.
func (w *Writer) inUse(c plan.Change) bool {
	if c.Knob != plan.SubtreeControl {
		return false
	}
	sets, _ := w.tree.CPUSets(c.Cgroup.Path)
	outer, err := w.tree.EffectiveCPUs(c.Cgroup.Path)
	return err == nil && slices.ContainsFunc(sets, func(s cgroup.CPUSet) bool {
		e, _ := w.journal.Entry(workload.ID{Path: s.Path, Inode: s.Inode}, plan.CPUs)
		return len(s.CPUs) > 0 && !outer.Within(s.CPUs) && !w.ours(e, plan.Value(s.CPUs.String()))
	})
}

// family carries out a change, and where it gives a group its CPUs back, widens those that inherit it. The journal knows of
// them before: a crash in between leaves them to the next restore.
func (w *Writer) family(c plan.Change, force bool) []plan.Result {
	if c.Restore {
		c.To = w.attainable(c.Knob, c.To, path.Dir(c.Cgroup.Path))
	}
	inherited, results := w.claimInherited(c)
	r := w.one(c, force)
	for _, c := range inherited {
		if r.Outcome == plan.Applied {
			results = append(results, w.one(c, true))
		} else if err := w.journal.Done(c.Cgroup, c.Knob); err != nil { // what it holds its parent has still
			results = append(results, w.result(c, plan.Refused, c.From, err))
		}
	}
	return append([]plan.Result{r}, results...)
}

// claimInherited claims the groups below one whose CPUs are to be put back, as far as they hold what it holds and nobody else
// has claimed them, and makes the changes that widen them.
func (w *Writer) claimInherited(c plan.Change) (inherited []plan.Change, failed []plan.Result) {
	if c.Knob != plan.CPUs || !c.Restore || w.tree.Version() != cgroup.V1 {
		return nil, nil
	}
	sets, err := w.tree.CPUSets(c.Cgroup.Path)
	if err != nil {
		return nil, nil
	}
	inherits := map[string]bool{c.Cgroup.Path: true}
	for _, s := range sets {
		child := workload.ID{Path: s.Path, Inode: s.Inode}
		_, claimed := w.journal.Entry(child, plan.CPUs)
		if !inherits[path.Dir(s.Path)] || claimed || plan.Value(s.CPUs.String()) != c.From {
			continue
		}
		inherits[s.Path] = true
		widening := plan.Change{Cgroup: child, Knob: plan.CPUs, From: c.From, To: c.To, Restore: true, Why: "made while its parent was confined"}
		if err := w.adopt(child, plan.CPUs, c.From, c.To); err != nil {
			failed = append(failed, w.result(widening, plan.Refused, c.From, err))
			continue
		}
		inherited = append(inherited, widening)
	}
	return inherited, failed
}

// whyCPUs says why the kernel refuses CPUs (kernel/cgroup/cpuset.c, validate_change and update_cpumask).
func (w *Writer) whyCPUs(err error) string {
	switch {
	case errors.Is(err, syscall.EBUSY):
		return "a group in it has a CPU that these leave out"
	case errors.Is(err, syscall.ENOSPC):
		return "a group with tasks needs a CPU"
	case errors.Is(err, syscall.EACCES) && w.tree.Version() == cgroup.V1:
		return "its parent has not all of these CPUs"
	case errors.Is(err, syscall.EINVAL):
		return "a CPU of these is offline, or another group has it exclusively"
	}
	return ""
}
