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

// CPUs have three peculiarities on v1. The groups of the cpuset controller are in another hierarchy, with inodes of
// their own. When a CPU goes offline, the kernel removes it from cpuset.cpus permanently, without a write by any
// program (kernel/cgroup/cpuset-v1.c, cpuset1_hotplug_update_tasks). And a new group has no CPUs, so that the program
// that makes it copies its parent's, which may be ours: such a group is not in the journal, and is widened with its
// parent.

// inode is the identity of a group in the hierarchy that has the knob.
func (w *Writer) inode(group string, knob plan.Knob) (uint64, error) {
	if knob.OfCPUSet() {
		return w.tree.CPUSetInode(group)
	}
	return w.tree.Inode(group)
}

// setPartition writes cpuset.cpus.partition. The kernel accepts the write of a partition that it cannot make, and calls
// it invalid. Such a write is undone, because an invalid partition may become valid at any later time.
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
	why := fmt.Errorf("the kernel cannot make the partition: %s", invalid)
	return errors.Join(why, tree.SetPartition(group, before))
}

// shrunk says whether the kernel removed CPUs that went offline from a value of ours, possibly all of them: no other
// writer can empty the set of a group with processes (validate_change).
func (w *Writer) shrunk(e journal.Entry, held plan.Value) bool {
	if e.Knob != plan.CPUs || w.tree.Version() != cgroup.V1 || !e.Written() {
		return false
	}
	return held.Within(e.Last) || e.Ours(e.Prev) && held.Within(e.Prev)
}

// attainable is the part of a value that can be restored below a group: on v1 the kernel refuses CPUs that the parent
// lacks. The root lacks offline CPUs, and any other group may have lost them.
func (w *Writer) attainable(knob plan.Knob, v plan.Value, group string) plan.Value {
	if knob != plan.CPUs || w.tree.Version() != cgroup.V1 {
		return v
	}
	has, err1 := w.tree.CPUs(group)
	want, err2 := v.Set()
	if some := want.And(has); err1 == nil && err2 == nil && len(some) > 0 {
		return plan.Set(some)
	}
	return v
}

// steps returns the change, or two for CPUs on v1 where some are added and some removed: first to the union of old and
// new, then to the new set, so that neither parents nor children prevent it. Exclusive CPUs are removed first, and
// added once other groups have left them (validate_change).
func (w *Writer) steps(c plan.Change) []plan.Change {
	if c.Knob == plan.Exclusive && !c.From.Within(c.To) && !c.To.Within(c.From) {
		a, err1 := c.From.Set()
		b, err2 := c.To.Set()
		if err1 == nil && err2 == nil {
			return through(c, a.And(b))
		}
	}
	if c.Knob != plan.CPUs || w.tree.Version() != cgroup.V1 {
		return []plan.Change{c}
	}
	if c.Restore {
		c.To = w.attainable(c.Knob, c.To, "/")
	}
	live := w.attainable(c.Knob, c.From, "/") // the kernel refuses CPUs that are offline
	a, err1 := live.Set()
	b, err2 := c.To.Set()
	if err1 != nil || err2 != nil || a.Within(b) || c.To.Within(c.From) {
		return []plan.Change{c}
	}
	return through(c, a.Union(b))
}

// through splits a change in two.
func through(c plan.Change, middle cpu.Set) []plan.Change {
	first, last := c, c
	first.To, first.Restore = plan.Set(middle), false
	last.From = first.To
	return []plan.Change{first, last}
}

// inUse says whether another program has bound a group for which we enabled the cpuset controller. Disabling the
// controller would unbind that group.
func (w *Writer) inUse(c plan.Change) bool {
	if c.Knob != plan.SubtreeControl {
		return false
	}
	sets, _ := w.tree.CPUSets(c.Cgroup.Path)
	outer, err := w.tree.EffectiveCPUs(c.Cgroup.Path)
	return err == nil && slices.ContainsFunc(sets, func(s cgroup.CPUSet) bool {
		e, _ := w.journal.Entry(workload.ID{Path: s.Path, Inode: s.Inode}, plan.CPUs)
		return len(s.CPUs) > 0 && !outer.Within(s.CPUs) && !w.ours(e, plan.Set(s.CPUs))
	})
}

// family carries out a change. Where it restores a group's CPUs, it widens the groups that copied them as well. These
// are in the journal before: after a crash in between the next restore finds them.
func (w *Writer) family(c plan.Change, force bool) []plan.Result {
	if c.Restore {
		c.To = w.attainable(c.Knob, c.To, path.Dir(c.Cgroup.Path))
	}
	inherited, results := w.claimInherited(c)
	r := w.one(c, force)
	for _, c := range inherited {
		if r.Outcome == plan.Applied {
			results = append(results, w.one(c, true))
		} else if err := w.journal.Done(c.Cgroup, c.Knob); err != nil { // the parent still has its CPUs
			results = append(results, w.result(c, plan.Refused, c.From, err))
		}
	}
	return append([]plan.Result{r}, results...)
}

// claimInherited claims the groups below one whose CPUs are restored, if they hold the same CPUs and have no claim yet,
// and makes the changes that widen them.
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
		if !inherits[path.Dir(s.Path)] || claimed || plan.Set(s.CPUs) != c.From {
			continue
		}
		inherits[s.Path] = true
		widening := plan.Change{Cgroup: child, Knob: plan.CPUs, From: c.From, To: c.To,
			Restore: true, Why: "made while its parent was confined"}
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

// free restores the CPUs of a group that was not bound to any. Most kernels refuse an empty list while there are tasks
// in the group (v2; kernel/cgroup/cpuset.c, validate_change). A list of all possible CPUs is equivalent: the kernel
// accepts offline CPUs (v2, update_cpumask), and cuts the list to the CPUs of the parent. The CPUs in partitions of
// other programs are left out: in the list of a sibling they make the partition invalid.
func (w *Writer) free(c plan.Change, refused error) plan.Result {
	all, err := w.Possible.Minus(w.partitioned()), error(nil)
	if len(all) == 0 {
		all, err = w.tree.EffectiveCPUs("/")
	}
	if err == nil {
		err = w.tree.SetCPUs(c.Cgroup.Path, all)
	}
	held, lookErr := w.look(c.Cgroup, c.Knob)
	switch {
	case isGone(lookErr):
		return w.ended(c, plan.Gone, "", lookErr)
	case err != nil || lookErr != nil:
		return w.result(c, plan.Refused, held, w.explain(c, errors.Join(refused, err, lookErr)))
	}
	why := fmt.Errorf("the kernel takes no empty list while tasks are in the group; it has all CPUs: %s", held)
	return w.ended(c, plan.Clamped, held, why)
}

// partitioned is the set of CPUs in partitions of other programs: the root lacks them although they are online (v2).
func (w *Writer) partitioned() cpu.Set {
	if w.Online == nil {
		return nil
	}
	online, err := w.Online()
	effective, err2 := w.tree.EffectiveCPUs("/")
	if err != nil || err2 != nil {
		return nil
	}
	others := online.Minus(effective)
	if len(others) == 0 {
		return nil
	}
	for _, e := range w.journal.Entries() {
		written, err := e.Last.Set()
		owners, err2 := e.Target().Set()
		if e.Knob == plan.Exclusive && err == nil && err2 == nil {
			others = others.Minus(written.Minus(owners))
		}
	}
	return others
}
