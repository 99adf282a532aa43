package policy

import (
	"cmp"
	"slices"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Suppression by CPUs instead of quotas.
//
// Problem: a quota has offline work run everywhere for a part of each period, also on the cores where online work runs.
// Some CPUs and not others keep it off the rest, and it is not throttled there.
//
// Approach: of the node's CPUs, in the order of their cores, offline work keeps the last ones, as many whole ones as its
// room has, and one in any case. So when the room changes, CPUs are added to or taken from what there was, and the threads
// of a core go together. No group gets a CPU that its owner did not give it, and each is to keep one: the cores with CPUs
// that all offline groups may use are the last, and where there is no such CPU, quotas are used. On v1 no group may have a
// CPU that the one above it has not: there what is below an offline group is bound as well.
//
// Known limits: whole CPUs are coarse on small nodes. On v2 a group that inherits its CPUs gets quotas: the kernel does not
// let it inherit again while tasks are in it (ENOSPC). Beside CPUs that containers have of their own (reserve), quotas are
// used: who may use which CPU is decided there.

// Confined is a group that is bound to CPUs, and what it was bound to before us.
type Confined struct {
	workload.ID // in the hierarchy of the cpuset controller
	Before      cpu.Set
	Follows     bool // its file stays as it is: the kernel cuts it to what the group above has (v2)
}

// confine binds offline groups to as many CPUs as the room has; nothing where there is no CPU that all of them may use.
func confine(room float64, on cpu.Topology, groups []Confined) []plan.Intent {
	common := on.Set()
	for _, g := range groups {
		common = common.And(g.Before)
	}
	if len(common) == 0 {
		return nil
	}
	pick := lastCPUs(room, on, common)
	var list []plan.Intent
	for _, g := range groups {
		if g.Follows {
			continue
		}
		list = append(list, intent(g.ID, plan.CPUs, plan.Value(g.Before.And(pick).String()), aboveMark))
	}
	return list
}

// lastCPUs picks whole CPUs, the threads of a core together: the cores with CPUs of a set first, and of a core those CPUs.
func lastCPUs(room float64, on cpu.Topology, first cpu.Set) cpu.Set {
	cores := map[int]bool{}
	for _, p := range on.Places {
		cores[p.Core] = cores[p.Core] || first.Contains(p.CPU)
	}
	places := slices.Clone(on.Places)
	slices.SortFunc(places, func(a, b cpu.Place) int {
		return cmp.Or(falseFirst(cores[a.Core], cores[b.Core]), cmp.Compare(a.Core, b.Core),
			falseFirst(first.Contains(a.CPU), first.Contains(b.CPU)), cmp.Compare(a.CPU, b.CPU))
	})
	n := min(len(places), max(1, int(room+roomNoise)))
	var set cpu.Set
	for _, p := range places[len(places)-n:] {
		set = append(set, p.CPU)
	}
	slices.Sort(set)
	return set
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
