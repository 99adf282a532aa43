package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestSchedulerCounts: what the scheduler counts of a group is the group's, and still is when it has gone.
func TestSchedulerCounts(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.run(2 * time.Second)
	before := w.status("/web").Totals
	l.last().counted = map[uint64]cpu.Counters{w.id("/web").Inode: {Periods: 500, Throttled: 400,
		ThrottledTime: time.Second, Bursts: 3, BurstTime: ms}}
	w.run(2 * time.Second)
	got := w.status("/web").Totals
	if got.Throttled-before.Throttled != 400 || got.Bursts-before.Bursts != 3 {
		t.Errorf("%+v, and then %+v", before, got)
	}
	if c := w.agent.Status().Colocation.Scheduler; c.Totals.Kicks != 7 {
		t.Errorf("%+v", c)
	}
	w.ask(strategy.MechanismIdle)
	w.run(3 * time.Second)
	if later := w.status("/web").Totals; later.Throttled != got.Throttled || later.Periods < got.Periods {
		t.Errorf("%+v, and when it has gone %+v", got, later)
	}
	w.ask(strategy.MechanismSchedExt)
	w.run(3 * time.Second)
	if c := w.agent.Status().Colocation.Scheduler; c.Totals.Kicks != 14 {
		t.Errorf("two schedulers: %+v", c)
	}
}

// TestSchedulerThrottles: throttles of which the scheduler alone knows are added to those that the kernel's programs
// have counted, and stay when it goes.
func TestSchedulerThrottles(t *testing.T) {
	for _, active := range []bool{true, false} {
		l := &loader{usable: true}
		w := scheduledWorld(t, l)
		if active {
			w.listens(map[uint64]report.Throttles{w.id("/web").Inode: {Begun: 3, Ended: 3, Wall: 30 * ms,
				Lengths: []report.Length{{UpTo: 16 * ms, N: 3}}}})
		}
		w.run(2 * time.Second)
		want := report.Throttles{Begun: 2, Ended: 2, Wall: 10 * ms, Last: ms, Peak: 5 * ms,
			Lengths: []report.Length{{UpTo: 8 * ms, N: 2}}}
		l.last().stood = map[uint64]report.Throttles{w.id("/web").Inode: want}
		if active {
			want = report.Throttles{Begun: 5, Ended: 5, Wall: 40 * ms, Last: ms, Peak: 5 * ms,
				Lengths: []report.Length{{UpTo: 8 * ms, N: 2}, {UpTo: 16 * ms, N: 3}}}
		}
		got := w.status("/web").Totals
		if diff := cmp.Diff(&want, got.Events); diff != "" || active && got.ThrottledWall != 40*ms {
			t.Errorf("subscribed %v: lost %v\n%s", active, got.ThrottledWall, diff)
		}
		w.ask(strategy.MechanismIdle)
		w.run(3 * time.Second)
		want.Last = 0
		if diff := cmp.Diff(&want, w.status("/web").Totals.Events); diff != "" {
			t.Errorf("subscribed %v, when it has gone:\n%s", active, diff)
		}
	}
}

// TestSchedulerTells: a group that the scheduler says was throttled is looked at in the next turn, and not when it is
// its turn again.
func TestSchedulerTells(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.classed("/api", workload.ClassLS)
	w.listens(nil)
	for _, path := range []string{"/web", "/api"} {
		w.kernel.SetLoad(path, sim.Load{}) // nothing else has it looked at
	}
	age := func(path string) time.Duration {
		return w.kernel.Now().Sub(w.agent.groups[w.id(path)].Reading.At)
	}
	w.run(20 * time.Second)
	if age("/web") < 5*time.Second {
		t.Fatalf("looked at %v ago: the scenario proves nothing", age("/web"))
	}
	l.last().changed = []uint64{w.id("/web").Inode}
	w.run(2 * time.Second)
	if age("/web") > 1100*ms || age("/api") < 5*time.Second {
		t.Errorf("looked at %v ago, and at the one that was not throttled %v", age("/web"), age("/api"))
	}
}

// listens subscribes the agent to events that have counted throttles.
func (w *world) listens(totals map[uint64]report.Throttles) {
	w.agent.Events = &fakeEvents{suppressed: map[uint64]bool{}, limits: map[uint64]time.Duration{}, totals: totals}
	w.agent.subscription.active = true
}
