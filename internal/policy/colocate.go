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
// Problem: two containers on a node share its CPUs by their weights. Offline work uses all the CPU time that it can
// get, and so delays online work by its share. Kernels have several mechanisms against this, but no mechanism is in all
// of them; the knobs apply among siblings only; and kubelet, systemd and runtimes write the same files.
//
// Approach: Levels finds the groups of the tree at which the priority is set; the driver of the mechanism says which
// value each of their knobs gets (Colocate). The ledger decides whose value a file holds and what is restored.
//
// Known limits: a weight that an owner changes while ours is in the file counts as foreign, except where the kubelet
// writes it.

// intent makes an intent with the priority of colocation.
func intent(id workload.ID, knob plan.Knob, value plan.Value, why string) plan.Intent {
	return plan.Intent{Key: plan.Key{ID: id, Knob: knob}, Value: value, Why: why, Priority: plan.ForColocation}
}

// Colocate lists the mechanism's intents for the levels, and those for the requested slice; 0: no slice.
func Colocate(name strategy.Mechanism, slice time.Duration, levels []Level, m Machine) []plan.Intent {
	all := drivers()
	d := slices.IndexFunc(all, func(d driver) bool { return d.name == name })
	if d < 0 {
		return nil
	}
	var list []plan.Intent
	for _, l := range levels {
		list = append(list, all[d].intents(l, m)...)
	}
	list = append(list, identitySysctl(list, m)...)
	return append(list, slicesOf(name, slice, levels, m)...)
}

// InForce maps the offline groups, by path, to whether the mechanism is verified in force there: each knob holds the
// value of its intent. The groups below such a group are deprioritized with it.
func InForce(intents []plan.Intent, holds func(plan.Key) bool, exposed []string) map[string]bool {
	groups := map[string]bool{}
	for _, in := range intents {
		if in.Knob == plan.IdentitySysctl || in.Knob.OfBandwidth() || in.Knob == plan.CPUs || in.Knob.OfTasks() {
			continue // gives no priority, or no strict one
		}
		before, seen := groups[in.Path]
		groups[in.Path] = holds(in.Key) && (before || !seen) && !slices.Contains(exposed, in.Path)
	}
	return groups
}
