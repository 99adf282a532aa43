package policy

import (
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Online work strictly before offline work.
//
// Problem: two containers on a node share its CPUs by their weights, so that offline work, which takes all the CPU there
// is, delays online work by its share. The kernels have several mechanisms against it, and none that all have; the knobs
// count among siblings; and kubelet, systemd and runtimes write the same files.
//
// Approach: of a tree of containers with grades, Levels finds the groups at which the priority takes hold; the driver of
// the mechanism says which knob of them is to hold what (Colocate). Whose value a file holds, and what is restored, is the
// ledger's.
//
// Known limits: a weight that an owner changes while ours stands counts as foreign, but for the kubelet's.

// intent is one of colocation.
func intent(id workload.ID, knob plan.Knob, value plan.Value, why string) plan.Intent {
	return plan.Intent{Key: plan.Key{ID: id, Knob: knob}, Value: value, Why: why, Priority: plan.ForColocation}
}

// Colocate is what the mechanism wants of the levels, and the slice that is asked for besides; 0: none.
func Colocate(name strategy.Mechanism, slice time.Duration, levels []Level, m Machine) []plan.Intent {
	d := driverOf(name)
	if d == nil {
		return nil
	}
	var list []plan.Intent
	for _, l := range levels {
		list = append(list, d.intents(l, m)...)
	}
	list = append(list, identitySysctl(list, m)...)
	return append(list, slicesOf(name, slice, levels, m)...)
}

// InForce lists the offline groups, by path, at which the mechanism is verified in force: the knobs of each hold what they are
// to. What is below such a group yields with it.
func InForce(intents []plan.Intent, holds func(plan.Key) bool, exposed []string) map[string]bool {
	groups := map[string]bool{}
	for _, in := range intents {
		if in.Knob == plan.IdentitySysctl || in.Knob.OfBandwidth() || in.Knob == plan.CPUs || in.Knob.OfTasks() {
			continue // prefers nobody, or not strictly
		}
		before, seen := groups[in.Path]
		groups[in.Path] = holds(in.Key) && (before || !seen) && !slices.Contains(exposed, in.Path)
	}
	return groups
}
