package agent

import (
	"fmt"
	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/risk"
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
		a.reader.StaleAll(now)
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

// measureRisk has the bursts sized anew, once a minute.
func (a *Agent) measureRisk(now time.Time) {
	switch target := a.Strategy.LoadLinePercent; {
	case target == 0:
		a.risk.Off("")
	case !a.subscription.active || a.Uncounted:
		a.risk.Off("loadLinePercent: the kernel does not count the use of periods: " + a.subscription.why)
	case a.risk.Due(now):
		var groups []risk.Group
		for id, g := range a.groups {
			if g.Level == observe.LevelContainer && g.Disk.Limited() {
				groups = append(groups, risk.Group{ID: id, Limit: g.limit.Quota, Bandwidth: g.Disk, Since: g.Since, Asked: policy.AskedBurst(g.Strategy, a.Rules)})
			}
		}
		busy, err := a.Host.Busy()
		a.risk.Measure(now, target, groups, busy, err, a.record.Node().CPUs)
	}
}

// otherBursts has all bursts decided anew.
func (a *Agent) otherBursts() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reader.DueAll()
	a.wake()
}

// countBy has the use of a group's periods counted by its limit, raised or not.
func (a *Agent) countBy(g *group, limit time.Duration) {
	if !a.subscription.active || a.subscription.pods[g.Inode] == nil || g.counted == limit {
		return
	}
	g.counted = limit
	if err := a.Events.Limit(g.Inode, limit); err != nil {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}
