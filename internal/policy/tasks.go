package policy

import (
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Knobs that each task of a group has, and not the group.
//
// A slice (EEVDF) decides who of those that are due is run first, and how long who runs is left alone. A short one gets an
// online task a CPU sooner, and no more of it; that is all the mechanism slice does. Beside a mechanism that has online
// tasks preempt offline ones anyway, as cpu.idle does, a long one may pay: idle is a weight of 3 and no more, so that a task
// at the end of its slice can be made to wait for an idle group until the next tick (kernel/sched/fair.c, pick_eevdf: who
// has had more than its share is not picked, whatever it weighs), and what it is owed for that is remembered in proportion
// to its slice (update_entity_lag). lab/colocation measures both.
//
// A core-scheduling cookie keeps tasks that have different ones off each other's cores, and puts nobody first: so it goes
// to offline tasks, one cookie for all, and beside it they yield as ever. Online tasks have none, and share cores
// with each other and with the system's.
//
// Known limits: a task that leaves its group takes both along, until it ends. Who has set a slice or a cookie of his own
// keeps it.

// shortSlice is what online tasks get where nothing else is done for them: the least that the kernel takes.
const shortSlice = 100 * time.Microsecond

// sliceDriver gives online tasks slices, and does nothing else: what slicesOf does under every mechanism.
type sliceDriver struct{}

func (sliceDriver) preflight(m Machine) (bool, string) { return m.Slice, m.SliceWhy }

func (sliceDriver) intents(Level, Machine) []plan.Intent { return nil }

// slicesOf are the slices of online levels. A scheduler of our own has slices of its own.
func slicesOf(name strategy.Mechanism, slice time.Duration, levels []Level, m Machine) []plan.Intent {
	if slice == 0 && name == strategy.MechanismSlice {
		slice = shortSlice
	}
	if slice == 0 || !m.Slice || name == strategy.MechanismSchedExt {
		return nil
	}
	var list []plan.Intent
	for _, l := range levels {
		if l.QOS.Rank() == strategy.Online && !l.Inner {
			list = append(list, intent(l.ID, plan.Slice, plan.Time(slice), "online: the slice that is asked for"))
		}
	}
	return list
}

// coreDriver gives offline tasks a cookie, and has them yield as they would without.
type coreDriver struct{}

func (coreDriver) preflight(m Machine) (bool, string) {
	if m.Identity {
		return false, "the kernel has Group Identity, beside which core scheduling locks the machine up"
	}
	return m.CoreSched, m.CoreSchedWhy
}

func (coreDriver) intents(l Level, m Machine) []plan.Intent {
	list := deprioritized(l, m)
	if l.QOS.Rank() == strategy.Offline && !l.Inner {
		list = append(list, intent(l.ID, plan.Cookie, m.Cookie, "offline: not beside others on a core"))
	}
	return list
}

// deprioritized is how offline groups yield under a mechanism that has something else besides.
func deprioritized(l Level, m Machine) []plan.Intent {
	if m.Idle {
		return idleDriver{}.intents(l, m)
	}
	return weightDriver{}.intents(l, m)
}
