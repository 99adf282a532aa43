package trial

import (
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// throttledFor is how long a group was throttled in 5 minutes, and how often the agent wrote.
func throttledFor(t *testing.T, events bool, g Group) (throttled time.Duration, writes int) {
	t.Helper()
	w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Events: events, Groups: []Group{g}})
	before := len(w.Kernel.Writes())
	w.Run(5*time.Minute, nil)
	checkCaps(t, w)
	return w.Kernel.Throttled(g.Path), len(w.Kernel.Writes()) - before
}

// TestRefillsEndThrottles: what a throttle costs falls to a fraction, against no agent and against one that polls, and
// burst first leaves few to be ended.
func TestRefillsEndThrottles(t *testing.T) {
	none, _ := throttledFor(t, false, service("/lab/web", strategy.None))
	writes := map[strategy.Policy]int{}
	for _, p := range []strategy.Policy{strategy.CFSQuotaBurstOnly, strategy.Auto} {
		polled, _ := throttledFor(t, false, service("/lab/web", p))
		subscribed, n := throttledFor(t, true, service("/lab/web", p))
		t.Logf("%s: throttled for %v polled, %v subscribed (none %v), %d writes", p, polled, subscribed, none, n)
		if subscribed > none/200 || subscribed > polled/10 {
			t.Errorf("%s: throttled for %v, polled %v, without an agent %v", p, subscribed, polled, none)
		}
		writes[p] = n
	}
	if 2*writes[strategy.Auto] > writes[strategy.CFSQuotaBurstOnly] {
		t.Errorf("writes: %v; burst first leaves less than a half", writes)
	}
}

// TestOwnBurstsAreNoLoad: on a small machine a service that bursts uses half of it for a moment. That is no load to be
// guarded against.
func TestOwnBurstsAreNoLoad(t *testing.T) {
	still := map[strategy.Policy]time.Duration{}
	for _, p := range []strategy.Policy{strategy.None, strategy.CFSQuotaBurstOnly, strategy.Auto} {
		for seed := range uint64(10) {
			g := Group{Path: "/lab/web", Quota: 50 * ms, Period: 100 * ms, Strategy: with(p),
				Load: sim.Poisson(5.5, sim.Fixed(41*ms), 64)}
			others := Group{Path: "/lab/others", Quota: 200 * ms, Period: 100 * ms, Strategy: with(strategy.None),
				Load: sim.Poisson(120, sim.Fixed(2*ms), 2)}
			w := mustNew(t, Scenario{Kernel: mainline(2, seed), Threshold: 50, Events: true, Ahead: true,
				Groups: []Group{g, others}})
			w.Run(3*time.Minute, nil)
			still[p] += w.Kernel.Throttled(g.Path)
		}
		if p != strategy.None && still[p] > still[strategy.None]/200 {
			t.Errorf("%s: throttled for %v, without an agent %v", p, still[p], still[strategy.None])
		}
	}
	t.Log(still)
}

// TestRefillsUntilARaise: on a small machine there is no headroom for a raise and for refills. Until the raise is
// written the group is refilled all the same.
func TestRefillsUntilARaise(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var jobs []sim.Job
		for at := 2 * time.Second; at < 58*time.Second; at += 4300*ms + time.Duration(rng.Int64N(int64(500*ms))) {
			jobs = append(jobs, sim.Job{At: at, Cost: 1070 * ms, Lane: 1},
				sim.Job{At: at + 20*ms, Cost: 10 * ms, Lane: 2})
		}
		g := Group{Path: "/lab/batch", Quota: 50 * ms, Period: 100 * ms, Load: sim.Script(2, jobs...),
			Strategy: with(strategy.Auto)}
		w := mustNew(t, Scenario{Kernel: mainline(2, seed), Threshold: 100, Events: true, Ahead: true,
			Groups: []Group{g}})
		w.Run(60*time.Second, nil)
		if lost, raises := w.Kernel.ThrottledWall(g.Path), w.Agent.Status().Containers[0].Totals.Raises; lost > 10*ms ||
			raises < 10 {
			t.Errorf("seed %d: lost %v, %d raises", seed, lost, raises)
		}
	}
}

// TestRaiseReachesTheCap: a raise is cut to what may be granted in the period in which it is written. As long as it
// stands, there is no room for refills, and so the rest of it follows.
func TestRaiseReachesTheCap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var jobs []sim.Job
		for at := time.Duration(0); at < 30*time.Second; at += 1300 * ms {
			for lane := range 2 {
				jobs = append(jobs, sim.Job{At: at, Cost: 50*ms + time.Duration(rng.Int64N(int64(300*ms))),
					Lane: lane + 1})
			}
		}
		g := Group{Path: "/lab/jobs", Quota: 50 * ms, Period: 100 * ms, Load: sim.Script(2, jobs...),
			Strategy: with(strategy.Auto)}
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 90, Events: true, Ahead: true,
			Groups: []Group{g}})
		w.Run(25*time.Second, nil)
		checkCaps(t, w)
		if got, least := w.Kernel.Bandwidth(g.Path).Quota, 20*capOf(g)/21; got < least {
			t.Errorf("seed %d: the quota is %v, want %v at least", seed, got, least)
		}
	}
}

// TestLimitDoesNotMove: as long as demand does not last, no value in any file changes.
func TestLimitDoesNotMove(t *testing.T) {
	g := Group{Path: "/lab/a", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
		Load: sim.Periodic(700*ms, sim.Fixed(120*ms), 2)}
	w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Events: true, Groups: []Group{g}})
	before := w.snapshot()
	w.Run(time.Second, nil) // in which the agent gets to know the node
	still := w.Kernel.Throttled(g.Path)
	for range 600 {
		w.Run(50*ms, nil)
		if got := w.Kernel.Bandwidth(g.Path); got != (cpu.Bandwidth{Quota: g.Quota, Period: g.Period}) {
			t.Fatalf("%v: the limit is %v", w.Kernel.Now().Sub(w.start()), got)
		}
	}
	w.Stop()
	if after := w.snapshot(); len(before) == 0 || len(after) != len(before) {
		t.Errorf("files before %v, after %v", before, after)
	}
	refills := w.Agent.Status().Containers[0].Totals.Refills
	if still = w.Kernel.Throttled(g.Path) - still; refills < 40 || still > 20*ms {
		t.Errorf("%d refills, throttled for %v: a job of 120 ms that begins every 700 ms throttles at least once",
			refills, still)
	}
}

// TestRefillsAreBounded: a group that needs more than the cap in every period costs a few writes, not some in each
// period.
func TestRefillsAreBounded(t *testing.T) {
	hog := Group{Path: "/lab/hog", Quota: 20 * ms, Period: 100 * ms, Strategy: with(strategy.Auto), Load: sim.Spin(2)}
	if _, writes := throttledFor(t, true, hog); writes > 30 {
		t.Errorf("%d writes in 3000 periods", writes)
	}
}

// TestSavedTimeIsNotTheNodesToRefuse: on a full node, a container that has saved time is refilled, as the kernel's own
// burst would be, and one without a burst is not.
func TestSavedTimeIsNotTheNodesToRefuse(t *testing.T) {
	noise := Group{Path: "/lab/noise", Quota: 380 * ms, Period: 100 * ms, Strategy: with(strategy.None),
		Load: sim.Spin(4)}
	refills := map[strategy.Policy]int64{}
	for _, p := range []strategy.Policy{strategy.CFSQuotaBurstOnly, strategy.Auto} {
		g := Group{Path: "/lab/a", Quota: 20 * ms, Period: 100 * ms, Strategy: with(p),
			Load: sim.Periodic(2*time.Second, sim.Fixed(59*ms), 1)}
		w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 50, Events: true, Groups: []Group{g, noise}})
		w.Run(time.Minute, nil)
		refills[p] = w.Agent.Status().Containers[0].Totals.Refills
	}
	if refills[strategy.CFSQuotaBurstOnly] != 0 || refills[strategy.Auto] < 15 {
		t.Errorf("refills %v, want none and one in each of 30 jobs", refills)
	}
}

// TestLimitTooLow: a limit that throttles in more than half of a minute's periods is called too low.
func TestLimitTooLow(t *testing.T) {
	polledAndSubscribed(t, func(t *testing.T, events bool) {
		hog := Group{Path: "/lab/hog", Quota: 20 * ms, Period: 100 * ms, Strategy: with(strategy.Auto),
			Load: sim.Spin(2)}
		w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Events: events,
			Groups: []Group{hog, service("/lab/web", strategy.Auto)}})
		w.Run(30*time.Second, nil)
		for _, c := range w.Agent.Status().Containers {
			if c.TooLow {
				t.Errorf("%s: too low after half a minute", c.Name)
			}
		}
		w.Run(100*time.Second, nil)
		for _, c := range w.Agent.Status().Containers {
			if c.TooLow != (c.Name == hog.Path) {
				t.Errorf("%s: too low: %v", c.Name, c.TooLow)
			}
		}
	})
}
