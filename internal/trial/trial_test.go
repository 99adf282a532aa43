package trial

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

const ms = time.Millisecond

func with(p strategy.Policy) strategy.Strategy {
	s := strategy.Default()
	s.Policy = p
	return s
}

func mainline(cpus int, seed uint64) sim.Config {
	return sim.Config{CPUs: cpus, Version: 1 + int(seed%2), BurstFile: true, Seed: seed}
}

// cap is the most that a group may use in one period: the cap of quota bursting, or its limit and the burst saved.
func capOf(g Group) time.Duration {
	limit := g.Quota
	most := limit
	if g.Strategy.Policy.Quota() {
		most = max(most, cpu.Percent(limit, g.Strategy.CFSQuotaBurstPercent))
	}
	if g.Strategy.Policy.Burst() {
		most = max(most, limit+min(limit, cpu.Percent(limit, g.Strategy.CPUBurstPercent)))
	}
	return most
}

// checkCaps compares every period of every group with its cap.
func checkCaps(t *testing.T, w *World) {
	t.Helper()
	for _, g := range w.scene.Groups {
		for _, p := range w.Kernel.Periods(g.Path) {
			most := capOf(g)
			if w.waitedInVain(p) {
				most += g.Quota
			}
			if p.Used > most+time.Duration(min(w.scene.Kernel.CPUs, g.Load.Threads))*g.Period/25 {
				t.Errorf("%s used %v in the period from %v, cap %v (quota then %v, burst %v)", g.Path, p.Used,
					p.From.Sub(w.start()), most, p.Bandwidth.Quota, p.Bandwidth.Burst)
				w.logWrites(t, g.Path, p.From.Add(-p.To.Sub(p.From)), p.To)
				return
			}
		}
	}
}

func (w *World) start() time.Time { return time.Unix(1_700_000_000, 0) }

// TestHogReachesTheCap: a container with unlimited demand, alone on an idle node, gets close to three times its
// limit, and never more in any period.
func TestHogReachesTheCap(t *testing.T) {
	for _, policy := range []strategy.Policy{strategy.CFSQuotaBurstOnly, strategy.Auto} {
		for seed := range uint64(20) {
			g := Group{Path: "/lab/hog", Quota: 50 * ms, Period: 100 * ms, Load: sim.Spin(2), Strategy: with(policy)}
			w, err := New(Scenario{Kernel: mainline(4, seed), Threshold: 100, Groups: []Group{g},
				Events: seed/2%2 == 1})
			if err != nil {
				t.Fatal(err)
			}
			w.Run(60*time.Second, nil)
			checkCaps(t, w)
			used := w.Kernel.Used(g.Path).Seconds() / 60
			t.Logf("%s seed %d: %.3f CPUs, %d writes, %d turns", policy, seed, used, len(w.Kernel.Writes()), w.Turns)
			if used < 1.2 || used > 1.5 {
				t.Errorf("%s seed %d: used %.3f CPUs of a limit of 0.5, want close to 1.5", policy, seed, used)
			}
		}
	}
}

// TestRaiseOfALongPeriodLasts: many readings of a period make one demand. A raise that covers it stays.
func TestRaiseOfALongPeriodLasts(t *testing.T) {
	for seed := range uint64(20) {
		g := Group{Path: "/lab/a", Quota: 500 * ms, Period: time.Second, Load: sim.Spin(1),
			Strategy: with(strategy.CFSQuotaBurstOnly)}
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 100, Groups: []Group{g}})
		w.Run(30*time.Second, nil)
		w.Run(time.Minute, func(agent.Turn) {
			if got := w.Kernel.Bandwidth(g.Path).Quota; got <= g.Quota {
				t.Fatalf("seed %d: %v after %v", seed, got, w.Kernel.Now().Sub(w.start()))
			}
		})
	}
}

func randomGroup(rng *rand.Rand, path, pod string) Group {
	quota := time.Duration(10+rng.IntN(90)) * ms
	period := []time.Duration{100 * ms, 100 * ms, 100 * ms, 50 * ms, 250 * ms, time.Second}[rng.IntN(6)]
	quota = quota * period / (100 * ms)
	cost := sim.Exponential(quota * 8 / 10)
	perSecond := (0.2 + rng.Float64()) * float64(quota) / float64(period) / (quota.Seconds() * 0.8)
	loads := []sim.Load{sim.Spin(1), sim.Spin(2), sim.Poisson(perSecond, cost, 4), sim.Periodic(700*ms, cost, 2),
		sim.OnOff(2*time.Second, 5*time.Second, 2)}
	s := with([]strategy.Policy{strategy.Auto, strategy.Auto, strategy.CFSQuotaBurstOnly, strategy.CPUBurstOnly,
		strategy.None}[rng.IntN(5)])
	s.CFSQuotaBurstPercent = []int64{300, 300, 150, 200, 120, 1000}[rng.IntN(6)]
	if rng.IntN(4) == 0 {
		s.CFSQuotaBurstPeriodSeconds = int64(rng.IntN(10))
	}
	return Group{Path: path, Pod: pod, Quota: quota, Period: period, Load: loads[rng.IntN(len(loads))], Strategy: s}
}

// seeds is how many random machines are tried; `make test-long` tries more.
var seeds = flag.Uint64("seeds", 150, "random machines to try")

// TestManySeeds checks the rules with the shipped agent on random machines: no period above its cap, no container
// above its pod, everything put back. What the agent writes to the first machines is on record (decisions_test.go).
func TestManySeeds(t *testing.T) {
	record := recorded(t)
	for seed := range *seeds {
		rng := rand.New(rand.NewPCG(seed, 3))
		var groups []Group
		for i := range 1 + rng.IntN(6) {
			pod := ""
			if rng.IntN(2) == 0 {
				pod = "/kube/pod" + string(rune('a'+i))
			}
			base := pod
			if base == "" {
				base = "/lab"
			}
			groups = append(groups, randomGroup(rng, base+"/c"+string(rune('0'+i)), pod))
		}
		w, err := New(Scenario{Kernel: mainline(1+rng.IntN(8), seed), Threshold: int64(30 + rng.IntN(71)),
			Groups: groups, Events: seed/2%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		w.Run(30*time.Second, func(agent.Turn) { checkPods(t, w) })
		checkCaps(t, w)
		record.compare(t, seed, w)
		if e := w.Agent.Status().Events; e.Ineffective != 0 { // this kernel refills
			t.Errorf("%+v", e)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, groups)
		}
	}
}

// checkPods: a container is never above its pod, and a pod is what its containers make it.
func checkPods(t *testing.T, w *World) {
	t.Helper()
	for _, g := range w.scene.Groups {
		if g.Pod == "" || g.Quota == cpu.Unlimited {
			continue
		}
		c, p := w.Kernel.Bandwidth(g.Path), w.Kernel.Bandwidth(g.Pod)
		if p.CPUs() < c.CPUs()-1e-6 {
			t.Errorf("at %v %s has %v CPUs, its pod %v", w.Kernel.Now().Sub(w.start()), g.Path, c.CPUs(), p.CPUs())
		}
	}
}

// waitedInVain says whether a lowering that could wait no longer was made in a period.
func (w *World) waitedInVain(p sim.Period) bool {
	return slices.ContainsFunc(w.overdue, func(r plan.Result) bool {
		return r.Change.Cgroup == p.Group && !r.At.Before(p.From) && !r.At.After(p.To)
	})
}

// logWrites shows what was written to a group in a span.
func (w *World) logWrites(t *testing.T, path string, from, to time.Time) {
	t.Helper()
	for _, x := range w.Kernel.Writes() {
		if x.Group.Path == path && !x.At.Before(from) && !x.At.After(to) {
			t.Logf("  at %v %s = %s", x.At.Sub(w.start()), x.Name, x.Data)
		}
	}
}

// counters reads the kernel's counters of a group.
func (w *World) counters(path string) cpu.Counters {
	tree, err := cgroup.Detect(w.Kernel)
	if err != nil {
		panic(err)
	}
	c, err := tree.Counters(path)
	if err != nil {
		panic(err)
	}
	return c
}
