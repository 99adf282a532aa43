package policy

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// turn decides for one container of half a CPU on a machine with nothing else to do.
func turn(s *State, now time.Time, change func(*Group)) Output {
	g := Group{ID: workload.ID{Path: "/a", Inode: 1}, Strategy: strategy.Default(), Ready: true, Looked: true,
		Limit:   cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
		Disk:    cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 50 * ms},
		Reading: sample.Reading{At: now, Counters: cpu.Counters{HasUsage: true}}}
	g.Strategy.Policy = strategy.Auto
	if change != nil {
		change(&g)
	}
	return s.Decide(Input{Now: now, Rules: Rules{Burst: true},
		Node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 100},
		Pods: []Pod{{Ceiling: 8, Containers: []Group{g}}}})
}

// TestStable: a group is stable only when it holds all that it is to hold, or all but what a refused write is tried for
// again later.
func TestStable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Group)
		want   bool
	}{
		"all is as it shall be":            {nil, true},
		"a burst is missing":               {func(g *Group) { g.Disk.Burst = 0 }, false},
		"it has exclusive CPUs":            {func(g *Group) { g.CPUs = 2 }, false},
		"it is not ready":                  {func(g *Group) { g.Disk.Burst, g.Ready = 0, false }, false},
		"a write of its burst was refused": {func(g *Group) { g.Disk.Burst, g.BurstBlocked = 0, plan.Waiting }, true},
		"a write of its quota was refused": {func(g *Group) { g.QuotaBlocked = plan.Waiting }, true},
		"a raise of its burst was refused": {func(g *Group) { g.Disk.Burst, g.BurstBlocked = 0, plan.NoRaise }, true},
		"a raise was refused, and a burst is to go": {func(g *Group) {
			g.Paused, g.BurstBlocked = "it is paused", plan.NoRaise
		}, false},
		"a write was refused, and a burst is missing": {func(g *Group) {
			g.Disk.Burst, g.QuotaBlocked = 0, plan.Waiting
		}, false},
		"throttled": {func(g *Group) { g.Reading.Counters.Periods, g.Reading.Counters.Throttled = 1, 1 },
			false},
	} {
		s := NewState(0)
		turn(s, t0, nil)
		out := turn(s, t0.Add(90*ms), c.change)
		if got := out.Views[0].Stable; got != c.want {
			t.Errorf("%s: stable %v, want %v (%s)", name, got, c.want, out.Views[0].Why)
		}
	}
	s := NewState(0)
	deviant := func(g *Group) { g.QuotaBlocked = plan.Foreign }
	turn(s, t0, deviant)
	if out := turn(s, t0.Add(90*ms), deviant); out.Views[0].Stable {
		t.Error("stable, though the quota is another program's")
	}
}

// A burst that has to wait for the next period is still to be written then.
func TestPostponedIsNotSettled(t *testing.T) {
	s := NewState(0)
	turn(s, t0, nil)
	for _, m := range s.groups {
		m.lastWrite = t0.Add(60 * ms)
	}
	missing := func(g *Group) { g.Disk.Burst = 0 }
	if out := turn(s, t0.Add(90*ms), missing); out.Views[0].Stable || len(out.Intents) > 0 {
		t.Errorf("stable %v, changes %v", out.Views[0].Stable, out.Intents)
	}
	if out := turn(s, t0.Add(180*ms), missing); len(out.Intents) != 1 {
		t.Errorf("in the next period: %v", out.Intents)
	}
}

// TestQuiet: what was used after a rest is not spread over the rest.
func TestQuiet(t *testing.T) {
	used := func(g *Group) {
		g.Reading.Counters.Usage, g.Reading.Counters.ThrottledTime = 50*ms, 40*ms
		g.Reading.Counters.Periods, g.Reading.Counters.Throttled = 1, 1
	}
	s := NewState(0)
	turn(s, t0, nil)
	now := t0.Add(20 * time.Second)
	out := turn(s, now, func(g *Group) { used(g); g.Quiet = now.Add(-100 * ms) })
	if got, want := out.Views[0].Window.Elapsed(), 100*ms; got != want {
		t.Errorf("the window is %v long, want %v", got, want)
	}
	if got, want := out.Views[0].RequestedQuota, 99*ms; got != want {
		t.Errorf("quota %v wanted, want the demand and a tenth, %v", got, want)
	}
	s = NewState(0)
	turn(s, t0, nil)
	if out := turn(s, now, used); out.Views[0].RequestedQuota >= 99*ms {
		t.Errorf("without Quiet, too: %v", out.Views[0].RequestedQuota)
	}
}

// TestGone: only what is gone is forgotten; a group that is left out for a turn is known as before.
func TestGone(t *testing.T) {
	s := NewState(0)
	turn(s, t0, nil)
	s.Decide(Input{Now: t0.Add(90 * ms)})
	if len(s.groups) != 1 {
		t.Error("a group that was left out was forgotten")
	}
	s.Decide(Input{Now: t0.Add(180 * ms), Gone: []workload.ID{{Path: "/a", Inode: 1}}})
	if len(s.groups) != 0 {
		t.Error("a group that is gone was not forgotten")
	}
}

// TestGains: for a group raised to twice its limit and no more yet, a look at the period's edge is asked for only where
// more can be written there.
func TestGains(t *testing.T) {
	for _, c := range []struct {
		limit, width time.Duration
		want         bool
	}{
		{50 * ms, 4 * ms, true},
		{50 * ms, 99 * ms, false}, // it is not known well enough where the edge is
		{ms, ms, false},           // what the CPUs use meanwhile is more than may be granted
	} {
		limit, twice := cpu.Bandwidth{Quota: c.limit, Period: 100 * ms}, cpu.Bandwidth{Quota: 2 * c.limit,
			Period: 100 * ms}
		u := &candidate{Group: Group{Disk: twice, Strategy: strategy.Default()}, m: &memory{}, limit: limit, ceiling: 8,
			cpus: 2}
		u.decision = decision{quota: u.cap()}
		if got := u.gains(period{handed: 3 * c.limit, used: 3 * c.limit, edge: -1}, c.width); got != c.want {
			t.Errorf("limit %v, edge known to %v: gains %v, want %v", c.limit, c.width, got, c.want)
		}
	}
}

// TestFirstReadingFails: what a group did before its first reading is not of the first window, also where that reading
// comes later than the group.
func TestFirstReadingFails(t *testing.T) {
	for _, quiet := range []time.Duration{0, 50 * ms} {
		s := NewState(0)
		turn(s, t0, func(g *Group) { g.Looked, g.Reading = false, sample.Reading{} })
		for i := range 2 {
			now := t0.Add(time.Duration(i+1) * 100 * ms)
			out := turn(s, now, func(g *Group) {
				g.Reading.Counters = cpu.Counters{HasUsage: true, Usage: time.Hour, Periods: 36000, Throttled: 1000,
					ThrottledTime: time.Minute}
				if quiet > 0 {
					g.Quiet = now.Add(-quiet)
				}
			})
			if v := out.Views[0]; v.Window.Throttled > 0 || v.Window.Used > 0 || len(out.Intents) > 0 {
				t.Errorf("quiet for %v, reading %d: %+v, changes %+v", quiet, i, v.Window, out.Intents)
			}
		}
	}
}

// TestWatchedAfterAThrottle: where a throttle may lead to a raise, the group is watched until its limit covers the
// demand; other groups for 3 s. (Throttles are polled for, and the demand stays.)
func TestWatchedAfterAThrottle(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Pod)
		pod    bool // the throttle is the pod's
		want   bool // after 4 s
	}{
		"the node is full":   {func(*Pod) {}, false, true},
		"policy none":        {func(p *Pod) { p.Containers[0].Strategy.Policy = strategy.None }, false, false},
		"paused":             {func(p *Pod) { p.Containers[0].Paused = "it is paused" }, false, false},
		"a pod that follows": {func(*Pod) {}, true, false},
		"without a budget":   {func(p *Pod) { p.Containers[0].Strategy.CFSQuotaBurstPeriodSeconds = 0 }, false, false},
		"its limit is gone": {func(p *Pod) {
			p.Containers[0].Limit.Quota, p.Containers[0].Disk.Quota = cpu.Unlimited, cpu.Unlimited
		}, false, false},
	} {
		s, used := NewState(0), time.Duration(0)
		watched := func(after time.Duration) bool {
			of := func(path string, throttled bool) Group {
				g := Group{ID: workload.ID{Path: path}, Strategy: strategy.Default(), Ready: true, Looked: true,
					Limit:   cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
					Reading: sample.Reading{At: t0.Add(after), Counters: cpu.Counters{HasUsage: true, Usage: used}}}
				g.Strategy.Policy, g.Disk = strategy.Auto, g.Limit
				if throttled && after > 0 {
					g.Reading.Counters.Throttled = 1
				}
				return g
			}
			p := Pod{Group: of("/p", c.pod), Ceiling: 8, Containers: []Group{of("/p/a", !c.pod)}}
			c.change(&p)
			in := Input{Now: t0.Add(after), Pods: []Pod{p}, Node: Node{Known: true, CPUs: 8, Capacity: 8, Used: 7.5,
				ThresholdPercent: 100}}
			used += 60 * ms
			views := s.Decide(in).Views // the container's, and the pod's
			if c.pod {
				return views[1].Watched
			}
			return views[0].Watched
		}
		watched(0)
		for after := 100 * ms; after < 3*time.Second; after += 100 * ms {
			if !watched(after) {
				t.Errorf("%s: not watched after %v", name, after)
			}
		}
		for after := 3200 * ms; after < 4*time.Second; after += 100 * ms {
			if got := watched(after); got != c.want {
				t.Errorf("%s: watched after %v: %v", name, after, got)
			}
		}
	}
}
