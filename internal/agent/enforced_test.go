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
	l.last().counted = map[uint64]cpu.Counters{w.id("/web").Inode: {Periods: 500, Throttled: 400, ThrottledTime: time.Second, Bursts: 3, BurstTime: ms}}
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

// TestSchedulerThrottles: throttles of which the scheduler alone knows are added to those that the kernel's programs have
// counted, and stay when it goes.
func TestSchedulerThrottles(t *testing.T) {
	for _, hears := range []bool{true, false} {
		l := &loader{usable: true}
		w := scheduledWorld(t, l)
		if hears {
			w.listens(map[uint64]report.Throttles{w.id("/web").Inode: {Begun: 3, Ended: 3, Wall: 30 * ms, Lengths: []report.Length{{UpTo: 16 * ms, N: 3}}}})
		}
		w.run(2 * time.Second)
		want := report.Throttles{Begun: 2, Ended: 2, Wall: 10 * ms, Last: ms, Peak: 5 * ms, Lengths: []report.Length{{UpTo: 8 * ms, N: 2}}}
		l.last().stood = map[uint64]report.Throttles{w.id("/web").Inode: want}
		if hears {
			want = report.Throttles{Begun: 5, Ended: 5, Wall: 40 * ms, Last: ms, Peak: 5 * ms, Lengths: []report.Length{{UpTo: 8 * ms, N: 2}, {UpTo: 16 * ms, N: 3}}}
		}
		got := w.status("/web").Totals
		if diff := cmp.Diff(&want, got.Events); diff != "" || hears && got.ThrottledWall != 40*ms {
			t.Errorf("hears %v: lost %v\n%s", hears, got.ThrottledWall, diff)
		}
		w.ask(strategy.MechanismIdle)
		w.run(3 * time.Second)
		want.Last = 0
		if diff := cmp.Diff(&want, w.status("/web").Totals.Events); diff != "" {
			t.Errorf("hears %v, when it has gone:\n%s", hears, diff)
		}
	}
}

// TestSchedulerTells: a group that the scheduler says was throttled is looked at in the next turn, and not when it is its
// turn again.
func TestSchedulerTells(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.classed("/api", workload.ClassLS)
	w.listens(nil)
	for _, path := range []string{"/web", "/api"} {
		w.kernel.SetLoad(path, sim.Load{}) // nothing else has it looked at
	}
	age := func(path string) time.Duration {
		return w.kernel.Now().Sub(w.agent.groups[w.id(path)].reading.At)
	}
	w.run(20 * time.Second)
	if age("/web") < 5*time.Second {
		t.Fatalf("looked at %v ago: the scenario proves nothing", age("/web"))
	}
	l.last().heard = []uint64{w.id("/web").Inode}
	w.run(2 * time.Second)
	if age("/web") > 1100*ms || age("/api") < 5*time.Second {
		t.Errorf("looked at %v ago, and at the one that was not throttled %v", age("/web"), age("/api"))
	}
}

// listens gives the agent an ear, which has counted throttles.
func (w *world) listens(totals map[uint64]report.Throttles) {
	w.agent.Ear = &fakeEar{muted: map[uint64]bool{}, limits: map[uint64]time.Duration{}, totals: totals}
	w.agent.ear.hears = true
}
