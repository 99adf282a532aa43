package suppress

import (
	"cmp"
	"slices"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Suppression by CPUs instead of quotas.
//
// Problem: with a quota, offline work runs on all CPUs for a part of each period, also on the cores where online work
// runs. A cpuset keeps it off the other CPUs, and it is not throttled on its own.
//
// Approach: of the node's CPUs that the kernel balances, in the order of their cores, offline work keeps the last ones:
// as many whole CPUs as its room has, and at least one. So when the room changes, CPUs are added to or removed from the
// current set, and the threads of a core go together. No group gets a CPU that its owner did not give it, and each
// keeps at least one: the cores with CPUs that all offline groups may use come last, and where there is no such CPU,
// quotas are used. On v1 no group may have a CPU that its parent lacks: there the groups below an offline group are
// bound as well.
//
// Known limits: whole CPUs are coarse on small nodes. On v2 a group that inherits its CPUs gets quotas: the kernel does
// not let it inherit again while tasks are in it (ENOSPC). Where containers have exclusive CPUs (reserve), quotas are
// used, because package reserve decides there which group may use which CPU.

// Confined is a group to bind to CPUs, and the CPUs that it had before.
type Confined struct {
	workload.ID // in the hierarchy of the cpuset controller
	Before      cpu.Set
	Follows     bool // its file stays as it is: the kernel cuts it to what the group above has (v2)
}

// confine binds offline groups to as many CPUs as the room has. It returns nil where no CPU is common to all of them.
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
		list = append(list, intent(g.ID, plan.CPUs, plan.Value(g.Before.And(pick).String())))
	}
	return list
}

// lastCPUs picks whole CPUs, the threads of a core together. Cores with CPUs of first are preferred, and those CPUs
// within a core.
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
