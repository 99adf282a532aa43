package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
)

// While a scheduler of ours is in force, the kernel counts no period, no throttle and no burst, and its programs hear of
// none. What the scheduler has counted is added to what the kernel has, and kept when it goes.

// SchedulerTotals are sums over all CPUs since a scheduler was loaded.
type SchedulerTotals = report.SchedulerTotals

// enforced is what schedulers that were in force have counted.
type enforced struct {
	groups map[uint64]counted // by inode
	totals SchedulerTotals
}

// counted is what a scheduler has counted of a group.
type counted struct {
	counters cpu.Counters
	stood    report.Throttles
}

func (c counted) plus(s Scheduler, inode uint64) counted {
	return counted{c.counters.Plus(s.Counters(inode)), c.stood.Plus(s.Throttles(inode))}
}

// withScheduler is what all of them have counted of a group.
func (a *Agent) withScheduler(inode uint64) counted {
	c := a.priority.enforced.groups[inode]
	if s := a.priority.schedule.now; s != nil {
		c = c.plus(s, inode)
	}
	return c
}

// hearScheduler has the groups looked at that the scheduler says were throttled.
func (a *Agent) hearScheduler(now time.Time) {
	changed := map[uint64]bool{}
	for _, inode := range a.priority.schedule.now.Changed() {
		changed[inode] = true
	}
	if len(changed) == 0 {
		return
	}
	for _, g := range a.groups {
		if changed[g.Inode] {
			g.Due = now
			g.MarkDue()
		}
	}
}

// keepCounts keeps what the scheduler has counted beyond its end.
func (a *Agent) keepCounts(s Scheduler) {
	e := &a.priority.enforced
	kept := map[uint64]counted{}
	for _, g := range a.groups {
		if c := e.groups[g.Inode].plus(s, g.Inode); c.counters != (cpu.Counters{}) || c.stood.Begun > 0 {
			c.stood.Last = 0 // there is no period of it any more
			kept[g.Inode] = c
		}
	}
	e.groups = kept
	if t, ok := s.Totals(); ok {
		e.totals = e.totals.Plus(t)
	}
}
