package plan

import (
	"sort"
	"strings"
)

// Order sorts changes so that the kernel refuses none of them for their order: burst <= quota on every kernel, and
// on v1 child quota <= parent quota (kernel/sched/core.c, tg_set_cfs_bandwidth and tg_cfs_schedulable_down) and child
// CPUs within parent CPUs (kernel/cgroup/cpuset-v1.c, cpuset1_validate_change). So: bursts down; quotas up, parents
// first; quotas down, children first; bursts up. Then partitions end; the cpuset controller is handed on, parents
// first; CPUs are added, parents first; CPUs are taken away, children first; partitions begin; the controller is taken
// back, children first; and then the other knobs, Group Identity after it was switched on
// and before it is switched off.
func Order(changes []Change) {
	sort.SliceStable(changes, func(i, j int) bool {
		a, b := changes[i], changes[j]
		pa, pb := phaseOf(a), phaseOf(b)
		if pa.rank != pb.rank {
			return pa.rank < pb.rank
		}
		da, db := depth(a), depth(b)
		if da != db {
			return (da < db) == pa.parentsFirst
		}
		return a.Cgroup.Path < b.Cgroup.Path
	})
}

// phase is when a change is made, among others.
type phase struct {
	rank         int
	parentsFirst bool
}

func phaseOf(c Change) phase {
	up := c.raises()
	switch c.Knob {
	case Burst:
		return pick(up, phase{3, true}, phase{0, false})
	case Quota:
		return pick(up, phase{1, true}, phase{2, false})
	case Partition:
		return pick(c.To == Member, phase{4, false}, phase{10, true})
	case Exclusive:
		return pick(c.From.Within(c.To), phase{9, true}, phase{5, false})
	case SubtreeControl:
		return pick(c.To == "1", phase{6, true}, phase{11, false})
	case IdentitySysctl:
		return pick(c.To == "1", phase{12, true}, phase{14, true})
	case CPUs:
		return pick(c.To == "" || c.From != "" && c.From.Within(c.To), phase{7, true}, phase{8, false})
	}
	return phase{13, false}
}

func pick(yes bool, a, b phase) phase {
	if yes {
		return a
	}
	return b
}

// Within says whether one list of CPUs is part of another.
func (v Value) Within(outer Value) bool {
	a, err1 := v.Set()
	b, err2 := outer.Set()
	return err1 == nil && err2 == nil && a.Within(b)
}

// Member is the value of Partition of a group that is none.
const Member Value = "member"

func depth(c Change) int {
	if c.Cgroup.Path == "/" {
		return 0
	}
	return strings.Count(c.Cgroup.Path, "/")
}
