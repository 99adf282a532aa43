package policy

import (
	"fmt"
	"slices"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Machine is what a machine has of what the mechanisms need. Why says what is missing.
type Machine struct {
	Idle         bool // cpu.idle
	IdleWhy      string
	Identity     bool // cpu.bvt_warp_ns or cpu.identity, switched on, on a kernel that bears it
	IdentityWhy  string
	SchedExt     bool // a scheduler of ours can be loaded
	SchedExtWhy  string
	Slice        bool // tasks can have slices of their own
	SliceWhy     string
	CoreSched    bool // tasks can be kept off each other's cores
	CoreSchedWhy string
	Cookie       plan.Value // that offline tasks are given
	LeastWeight  int64      // of cpu.shares (2) or cpu.weight (1)
	// IdentitySysctl is the group that the machine's switch of Group Identity is the knob of; the zero value: there is no switch.
	IdentitySysctl workload.ID
}

// Verdict is what a mechanism's preflight found.
type Verdict struct {
	Mechanism strategy.Mechanism `json:"mechanism"`
	Usable    bool               `json:"usable"`
	Why       string             `json:"why"`
}

// driver is one way to have the kernel run online tasks before offline ones: whether the machine has it, and which
// knobs it turns at a level of the tree.
type driver interface {
	preflight(Machine) (usable bool, why string)
	intents(Level, Machine) []plan.Intent
}

// drivers are those there are, the best first. Without asking, only the first three are chosen (forTheAsking).
func drivers() []struct {
	name strategy.Mechanism
	driver
} {
	return []struct {
		name strategy.Mechanism
		driver
	}{
		{strategy.MechanismGroupIdentity, identityDriver{}},
		{strategy.MechanismIdle, idleDriver{}},
		{strategy.MechanismWeight, weightDriver{}},
		{strategy.MechanismSlice, sliceDriver{}},
		{strategy.MechanismCoreSched, coreDriver{}},
		{strategy.MechanismSchedExt, schedExtDriver{}},
	}
}

// Preflight asks every driver.
func Preflight(m Machine) []Verdict {
	var list []Verdict
	for _, d := range drivers() {
		usable, why := d.preflight(m)
		list = append(list, Verdict{d.name, usable, why})
	}
	return list
}

// forTheAsking says whether a mechanism is never chosen without asking: it costs others something, or does little.
func forTheAsking(m strategy.Mechanism) bool {
	return m == strategy.MechanismSchedExt || m == strategy.MechanismCoreSched || m == strategy.MechanismSlice
}

// Choose picks a mechanism: the one that was asked for if it is usable, else the best that is.
func Choose(asked strategy.Mechanism, m Machine) (chosen strategy.Mechanism, why string) {
	if asked == strategy.MechanismNone || asked == "" {
		return strategy.MechanismNone, "not asked for"
	}
	missing := ""
	for _, v := range Preflight(m) {
		switch {
		case v.Mechanism == asked && v.Usable:
			return v.Mechanism, "asked for: " + v.Why
		case v.Mechanism == asked:
			missing = fmt.Sprintf("%s is not to be had (%s); ", asked, v.Why)
		}
	}
	for _, v := range Preflight(m) {
		if v.Usable && !forTheAsking(v.Mechanism) {
			return v.Mechanism, missing + "the best here: " + v.Why
		}
	}
	return strategy.MechanismNone, missing + "no mechanism is usable"
}

func driverOf(name strategy.Mechanism) driver {
	for _, d := range drivers() {
		if d.name == name {
			return d.driver
		}
	}
	return nil
}

// idleDriver sets cpu.idle, which locks the weight: a kubelet that writes the weight of its QoS groups, at its start and
// once a minute, would fail with EINVAL (kubernetes #136025, koordinator #2732), and systemd clears idle before it
// writes a weight. So a group whose weight is kept by such an owner gets the least weight, which the kubelet gives it
// too, and what is below it is idle instead: there nobody writes. A pod whose weight is written when it is resized gets the
// least weight as well; beside its own kind, below a group that has it, it needs nothing.
type idleDriver struct{}

func (idleDriver) preflight(m Machine) (bool, string) { return m.Idle, m.IdleWhy }

func (idleDriver) intents(l Level, m Machine) []plan.Intent {
	switch {
	case l.QOS.Rank() != strategy.Offline:
		return nil
	case l.Kept:
		return leastWeight(l, m, "offline, and its owner writes its weight again and again")
	case l.Sized && l.Inner:
		return nil
	case l.Sized:
		return leastWeight(l, m, "offline, and its owner writes its weight when it is resized")
	}
	return []plan.Intent{intent(l.ID, plan.Idle, "1", "offline: runs when nothing beside it wants to")}
}

// weightDriver gives offline groups the least weight beside their siblings.
type weightDriver struct{}

func (weightDriver) preflight(Machine) (bool, string) { return true, "every kernel has it" }

func (weightDriver) intents(l Level, m Machine) []plan.Intent {
	if l.QOS.Rank() != strategy.Offline || l.Inner {
		return nil
	}
	return leastWeight(l, m, "offline: the least weight beside its siblings")
}

func leastWeight(l Level, m Machine, why string) []plan.Intent {
	return []plan.Intent{intent(l.ID, plan.Weight, plan.Number(m.LeastWeight), why)}
}

// schedExtDriver is the scheduler of our own, which somebody else loads. Underneath, offline groups are idle, so that
// they yield also when the scheduler is gone.
type schedExtDriver struct{}

func (schedExtDriver) preflight(m Machine) (bool, string) { return m.SchedExt, m.SchedExtWhy }

func (schedExtDriver) intents(l Level, m Machine) []plan.Intent { return deprioritized(l, m) }

// identityDriver gives groups their Group Identity, which what is below inherits.
type identityDriver struct{}

func (identityDriver) preflight(m Machine) (bool, string) { return m.Identity, m.IdentityWhy }

func (identityDriver) intents(l Level, _ Machine) []plan.Intent {
	if l.Inner || !l.QOS.Enable {
		return nil
	}
	return []plan.Intent{intent(l.ID, plan.Identity, plan.Number(l.QOS.GroupIdentity), string(l.QOS.Rank()))}
}

// identitySysctl has the machine's switch of Group Identity on as long as groups are to have one.
func identitySysctl(intents []plan.Intent, m Machine) []plan.Intent {
	if m.IdentitySysctl.Path == "" || !slices.ContainsFunc(intents, func(in plan.Intent) bool { return in.Knob == plan.Identity }) {
		return nil
	}
	return []plan.Intent{intent(m.IdentitySysctl, plan.IdentitySysctl, "1", "Group Identity is used")}
}
