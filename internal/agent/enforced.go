package agent

import (
	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
)

// SchedulerTotals are sums over all CPUs since a scheduler was loaded.
type SchedulerTotals = report.SchedulerTotals

// withScheduler adds what schedulers of ours have counted of a group to what the kernel has: while one is in force, the
// kernel counts no period, no throttle and no burst.
func (a *Agent) withScheduler(inode uint64, c cpu.Counters) cpu.Counters {
	c = plus(c, a.priority.counted[inode])
	if s := a.priority.schedule.now; s != nil {
		c = plus(c, s.Counters(inode))
	}
	return c
}

// keepCounts keeps what the scheduler has counted beyond its end.
func (a *Agent) keepCounts(s Scheduler) {
	kept := map[uint64]cpu.Counters{}
	for _, g := range a.groups {
		if c := plus(a.priority.counted[g.Inode], s.Counters(g.Inode)); c != (cpu.Counters{}) {
			kept[g.Inode] = c
		}
	}
	a.priority.counted = kept
}

// plus adds what a scheduler counts.
func plus(c, more cpu.Counters) cpu.Counters {
	c.Periods += more.Periods
	c.Throttled += more.Throttled
	c.ThrottledTime += more.ThrottledTime
	c.Bursts += more.Bursts
	c.BurstTime += more.BurstTime
	return c
}
