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
// of a core go together. On v1 no group may have a CPU that the one above it has not: there what is below an offline
// group is bound as well, each group to what it was bound to before, as far as that is left.
//
// Known limits: whole CPUs are coarse on small nodes. On v2 a group that inherits its CPUs gets quotas: the kernel does not
// let it inherit again while tasks are in it (ENOSPC). Beside CPUs that containers have of their own (reserve), quotas are
// used: who may use which CPU is decided there.

// Confined is a group that is bound to CPUs, and what it was bound to before us.
type Confined struct {
	workload.ID // in the hierarchy of the cpuset controller
	Before      cpu.Set
}

// confine binds offline groups to as many CPUs as the room has.
func confine(room float64, on cpu.Topology, groups []Confined) []Setting {
	pick := lastCPUs(room, on)
	var list []Setting
	for _, g := range groups {
		cpus := g.Before.And(pick)
		if len(cpus) == 0 {
			cpus = pick
		}
		list = append(list, Setting{ID: g.ID, Knob: plan.CPUs, Value: plan.Value(cpus.String()), Base: plan.Value(g.Before.String()),
			Why: "the node's use is above cpuSuppressThresholdPercent"})
	}
	return list
}

// lastCPUs picks whole CPUs, the threads of a core together.
func lastCPUs(room float64, on cpu.Topology) cpu.Set {
	places := slices.Clone(on.Places)
	slices.SortStableFunc(places, func(a, b cpu.Place) int { return cmp.Or(cmp.Compare(a.Core, b.Core), cmp.Compare(a.CPU, b.CPU)) })
	n := min(len(places), max(1, int(room+roomNoise)))
	var set cpu.Set
	for _, p := range places[len(places)-n:] {
		set = append(set, p.CPU)
	}
	slices.Sort(set)
	return set
}
