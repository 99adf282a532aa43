package policy

import (
	"fmt"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Attributes of the tasks of a group, not of the group itself.
//
// The slice of a task (EEVDF) decides which eligible task runs first and how long a task runs before it may be
// preempted. A short slice gets an online task a CPU sooner, but no more CPU time; that is all that the mechanism slice
// does. With a mechanism by which online tasks preempt offline ones anyway, such as cpu.idle, a long slice may be
// better: an idle group still has a weight of 3, so that a task at the end of its slice may have to wait for an idle
// group until the next tick (kernel/sched/fair.c, pick_eevdf: an entity that has had more than its share is not
// eligible, whatever its weight), and its lag is limited in proportion to its slice (update_entity_lag). lab/colocation
// measures both.
//
// A core-scheduling cookie keeps tasks with different cookies off each other's cores, and prioritizes no task: so all
// offline tasks get one cookie, and are deprioritized by another knob as well. Online tasks have no cookie, and share
// cores with each other and with system tasks.
//
// Known limits: a task that leaves its group keeps both until it exits. A task that has set its own slice or cookie
// keeps them.

// shortSlice is the slice of online tasks under the mechanism slice: the shortest that the kernel accepts.
const shortSlice = 100 * time.Microsecond

// slicesOf makes the intents for slices of online levels under every mechanism, but not under our sched_ext scheduler,
// which has slices of its own.
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
			list = append(list, intent(l.ID, plan.Slice, plan.Time(slice), "online: the requested slice"))
		}
	}
	return list
}

// NoSlices says why online tasks do not get the slice that is asked for beside a mechanism; "" where they get it.
func NoSlices(name strategy.Mechanism, slice time.Duration, m Machine) string {
	if slice == 0 || m.Slice || name == strategy.MechanismSchedExt {
		return ""
	}
	return fmt.Sprintf("a slice of %s is asked for and not set: %s", slice, m.SliceWhy)
}

// coreSched is the preflight of core scheduling.
func coreSched(m Machine) (usable bool, why string) {
	if m.Identity {
		return false, "the kernel has Group Identity, with which core scheduling locks the machine up"
	}
	return m.CoreSched, m.CoreSchedWhy
}

// cookies gives offline tasks a cookie, and deprioritizes them by idle or weight.
func cookies(l Level, m Machine) []plan.Intent {
	list := deprioritized(l, m)
	if l.QOS.Rank() == strategy.Offline && !l.Inner {
		list = append(list, intent(l.ID, plan.Cookie, m.Cookie, "offline: shares no core with other tasks"))
	}
	return list
}

// deprioritized makes the intents that deprioritize offline groups under a mechanism that does more than that. Under
// our sched_ext scheduler (package schedext) they stay deprioritized when it is unloaded.
func deprioritized(l Level, m Machine) []plan.Intent {
	if m.Idle {
		return idles(l, m)
	}
	return weights(l, m)
}
