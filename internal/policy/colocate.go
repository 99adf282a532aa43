package policy

import (
	"fmt"
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

// Machine says which features that mechanisms need the machine has. The Why fields say what is missing.
type Machine struct {
	Idle         bool // cpu.idle
	IdleWhy      string
	Identity     bool // cpu.bvt_warp_ns or cpu.identity is enabled, on a kernel on which it is safe
	IdentityWhy  string
	SchedExt     bool // our sched_ext scheduler can be loaded
	SchedExtWhy  string
	Slice        bool // tasks can have slices of their own
	SliceWhy     string
	CoreSched    bool // tasks can be kept off each other's cores
	CoreSchedWhy string
	Cookie       plan.Value // the core-scheduling cookie for offline tasks
	LeastWeight  int64      // the smallest value of cpu.shares (2) or cpu.weight (1)
	// IdentitySysctl is the key of the sysctl that enables Group Identity on the machine; the zero value: there is
	// none.
	IdentitySysctl workload.ID
}

// Verdict is what a mechanism's preflight found.
type Verdict struct {
	Mechanism strategy.Mechanism `json:"mechanism"` // its name
	Usable    bool               `json:"usable"`    // this machine has it
	Why       string             `json:"why"`       // why, or why not
}

// driver is one way to make the kernel run online tasks before offline ones: whether the machine supports it, and which
// knobs it sets at a level of the tree.
type driver struct {
	name      strategy.Mechanism
	intents   func(Level, Machine) []plan.Intent
	preflight func(Machine) (usable bool, why string)
}

// drivers lists all drivers, the best first. Only the first three are chosen without a request (onlyOnRequest).
func drivers() []driver {
	return []driver{
		{strategy.MechanismGroupIdentity, identities,
			func(m Machine) (bool, string) { return m.Identity, m.IdentityWhy }},
		{strategy.MechanismIdle, idles, func(m Machine) (bool, string) { return m.Idle, m.IdleWhy }},
		{strategy.MechanismWeight, weights, func(Machine) (bool, string) { return true, "every kernel has it" }},
		{strategy.MechanismSlice, func(Level, Machine) []plan.Intent { return nil }, // slicesOf makes them
			func(m Machine) (bool, string) { return m.Slice, m.SliceWhy }},
		{strategy.MechanismCoreSched, cookies, coreSched},
		{strategy.MechanismSchedExt, deprioritized,
			func(m Machine) (bool, string) { return m.SchedExt, m.SchedExtWhy }},
	}
}

// Preflight runs the preflight of every driver.
func Preflight(m Machine) []Verdict {
	var list []Verdict
	for _, d := range drivers() {
		usable, why := d.preflight(m)
		list = append(list, Verdict{d.name, usable, why})
	}
	return list
}

// onlyOnRequest says whether a mechanism is chosen only on request: it costs other tasks something, or does little.
func onlyOnRequest(m strategy.Mechanism) bool {
	return m == strategy.MechanismSchedExt || m == strategy.MechanismCoreSched || m == strategy.MechanismSlice
}

// Choose picks a mechanism: the requested one if it is usable, else the best usable one.
func Choose(asked strategy.Mechanism, m Machine) (chosen strategy.Mechanism, why string) {
	if asked == strategy.MechanismNone || asked == "" {
		return strategy.MechanismNone, "not requested"
	}
	missing, best := "", Verdict{Mechanism: strategy.MechanismNone, Why: "no mechanism is usable"}
	for _, v := range Preflight(m) {
		switch {
		case v.Mechanism == asked && v.Usable:
			return v.Mechanism, "requested: " + v.Why
		case v.Mechanism == asked:
			missing = fmt.Sprintf("%s is not usable (%s); ", asked, v.Why)
		case v.Usable && !best.Usable && !onlyOnRequest(v.Mechanism):
			best = Verdict{v.Mechanism, true, "the best here: " + v.Why}
		}
	}
	return best.Mechanism, missing + best.Why
}

// idles sets cpu.idle, which locks the weight: the kubelet, which writes the weight of its QoS groups at its start
// and once a minute, would fail with EINVAL (kubernetes #136025, koordinator #2732), and systemd clears idle before it
// writes a weight. So a group whose weight such an owner writes repeatedly gets the least weight, which the kubelet
// writes too, and the groups below it are made idle instead, because no program writes their weights. A pod whose
// weight is written at a resize gets the least weight as well; below a group that has the least weight it needs
// nothing.
func idles(l Level, m Machine) []plan.Intent {
	switch {
	case l.QOS.Rank() != strategy.Offline:
		return nil
	case l.Kept:
		return leastWeight(l, m, "offline, and its owner writes its weight repeatedly")
	case l.Sized && l.Inner:
		return nil
	case l.Sized:
		return leastWeight(l, m, "offline, and its owner writes its weight when it is resized")
	}
	return []plan.Intent{intent(l.ID, plan.Idle, "1", "offline: runs when no sibling is runnable")}
}

// weights gives offline groups the least weight beside their siblings.
func weights(l Level, m Machine) []plan.Intent {
	if l.QOS.Rank() != strategy.Offline || l.Inner {
		return nil
	}
	return leastWeight(l, m, "offline: the least weight beside its siblings")
}

func leastWeight(l Level, m Machine, why string) []plan.Intent {
	return []plan.Intent{intent(l.ID, plan.Weight, plan.Number(m.LeastWeight), why)}
}

// leastIdentity is the lowest value of Group Identity.
const leastIdentity = -2

// identities sets the Group Identity of groups. The groups below inherit it.
func identities(l Level, _ Machine) []plan.Intent {
	if l.Inner || !l.QOS.Enable {
		return nil
	}
	return []plan.Intent{intent(l.ID, plan.Identity, plan.Number(max(leastIdentity, l.QOS.Identity())),
		string(l.QOS.Rank()))}
}

// identitySysctl keeps the sysctl of Group Identity enabled as long as an intent sets an identity.
func identitySysctl(intents []plan.Intent, m Machine) []plan.Intent {
	ofIdentity := func(in plan.Intent) bool { return in.Knob == plan.Identity }
	if m.IdentitySysctl.Path == "" || !slices.ContainsFunc(intents, ofIdentity) {
		return nil
	}
	return []plan.Intent{intent(m.IdentitySysctl, plan.IdentitySysctl, "1", "Group Identity is used")}
}
