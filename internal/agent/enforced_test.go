package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// TestSchedulerCounts: what the scheduler counts of a group is the group's, and still is when it has gone.
func TestSchedulerCounts(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.run(2 * time.Second)
	before := w.status("/web").Totals
	l.last().counted = map[uint64]cpu.Counters{w.id("/web").Inode: {Periods: 500, Throttled: 400, ThrottledTime: time.Second, Bursts: 3, BurstTime: ms}}
	w.run(2 * time.Second)
	got := w.status("/web").Totals
	if got.Throttled-before.Throttled != 400 || got.Bursts-before.Bursts != 3 {
		t.Errorf("%+v, and then %+v", before, got)
	}
	if c := w.agent.Status().Colocation.Scheduler; c.Totals == nil || c.Totals.Kicks != 7 {
		t.Errorf("%+v", c)
	}
	w.ask(strategy.MechanismIdle)
	w.run(3 * time.Second)
	if later := w.status("/web").Totals; later.Throttled != got.Throttled || later.Periods < got.Periods {
		t.Errorf("%+v, and when it has gone %+v", got, later)
	}
}
