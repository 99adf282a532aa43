package agent

import (
	"fmt"
	"time"
)

// While somebody else's sched_ext scheduler runs all tasks, the kernel enforces no quota and no burst of theirs (KERNEL.md). What
// would be raised or refilled then would change nothing now and stand when the scheduler ends: so all groups are held at
// their limits meanwhile, as beside a scheduler of our own.

// overruledEvery is how often that is looked at.
const overruledEvery = time.Second

// overruled is what is known of such a scheduler.
type overruled struct {
	by string // its name; "" where there is none
	at time.Time
}

// overrule finds out whether there is one.
func (a *Agent) overrule(now time.Time) {
	if a.Overruled == nil || now.Sub(a.overruled.at) < overruledEvery {
		return
	}
	by := ""
	if !a.scheduler.Busy() { // or it may be ours
		by = a.Overruled()
	}
	if by != a.overruled.by {
		a.Log.Warn("a sched_ext scheduler runs all tasks: nothing is raised meanwhile", "scheduler", by, "before", a.overruled.by)
		a.markAllDue(now)
	}
	a.overruled = overruled{by, now}
}

// problem says it; "" where there is none.
func (o overruled) problem() string {
	if o.by == "" {
		return ""
	}
	return fmt.Sprintf("the sched_ext scheduler %s runs all tasks: the kernel enforces no quota and no burst, and none is raised meanwhile", o.by)
}
