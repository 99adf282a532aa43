package trial

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/agent"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// service is a bursty service at 45 % of half a CPU, as in the demo.
func service(path string, p strategy.Policy) Group {
	return Group{Path: path, Quota: 50 * ms, Period: 100 * ms, Load: sim.Poisson(5.6, sim.Fixed(40*ms), 8),
		Strategy: with(p)}
}

// polledAndSubscribed runs a test on a machine whose throttles are polled for, and on one with throttle events.
func polledAndSubscribed(t *testing.T, test func(t *testing.T, events bool)) {
	t.Run("polled", func(t *testing.T) { test(t, false) })
	t.Run("subscribed", func(t *testing.T) { test(t, true) })
}

func mustNew(t *testing.T, s Scenario) *World {
	t.Helper()
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSameSeedSameRun(t *testing.T) {
	run := func() []sim.Write {
		w := mustNew(t, Scenario{Kernel: mainline(2, 5), Threshold: 80, Groups: []Group{
			service("/lab/a", strategy.Auto), service("/lab/b", strategy.CFSQuotaBurstOnly)}})
		w.Run(20*time.Second, nil)
		return w.Kernel.Writes()
	}
	first := run()
	if len(first) < 8 {
		t.Fatalf("%d writes: the run proves nothing", len(first))
	}
	if diff := cmp.Diff(first, run(), cmp.Comparer(func(a, b error) bool {
		return fmt.Sprint(a) == fmt.Sprint(b)
	})); diff != "" {
		t.Error(diff)
	}
}

// throttledRatio is the part of a group's periods that ended throttled.
func throttledRatio(w *World, path string) float64 {
	c := w.counters(path)
	return float64(c.Throttled) / float64(max(1, c.Periods))
}

// TestPoliciesEndThrottling compares the policies on the same arrivals.
func TestPoliciesEndThrottling(t *testing.T) {
	ratio := map[strategy.Policy]float64{}
	for _, p := range []strategy.Policy{strategy.None, strategy.CPUBurstOnly, strategy.CFSQuotaBurstOnly,
		strategy.Auto} {
		w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Groups: []Group{service("/lab/web", p)}})
		w.Run(5*time.Minute, nil)
		ratio[p] = throttledRatio(w, "/lab/web")
	}
	t.Log(ratio)
	if ratio[strategy.None] < 0.15 {
		t.Errorf("the load throttles in %.3f of the periods only: it proves nothing", ratio[strategy.None])
	}
	for p, most := range map[strategy.Policy]float64{strategy.CPUBurstOnly: 1. / 3, strategy.CFSQuotaBurstOnly: 1. / 3,
		strategy.Auto: 1. / 5} {
		if ratio[p] > most*ratio[strategy.None] {
			t.Errorf("%s: throttled in %.4f of the periods, none: %.4f", p, ratio[p], ratio[strategy.None])
		}
	}
}

func TestRaiseIsGivenBack(t *testing.T) { polledAndSubscribed(t, raiseIsGivenBack) }

func raiseIsGivenBack(t *testing.T, events bool) {
	for seed := range uint64(20) {
		g := Group{Path: "/lab/a", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
			Load: sim.Script(2, sim.Job{Cost: sim.Forever, For: 10 * time.Second},
				sim.Job{Cost: sim.Forever, For: 10 * time.Second})}
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 100, Groups: []Group{g}, Events: events})
		w.Run(10*time.Second, nil)
		if w.Kernel.Bandwidth(g.Path).Quota <= g.Quota {
			t.Fatalf("seed %d: never raised", seed)
		}
		w.Run(5*time.Second, nil)
		if got := w.Kernel.Bandwidth(g.Path).Quota; got != g.Quota {
			t.Errorf("seed %d: %v five seconds after the end of the demand, want %v", seed, got, g.Quota)
		}
	}
}

func TestBudgetBoundsTheTimeAboveTheLimit(t *testing.T) { polledAndSubscribed(t, budgetBounds) }

func budgetBounds(t *testing.T, events bool) {
	g := Group{Path: "/lab/a", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
		Load: sim.Spin(2)}
	g.Strategy.CFSQuotaBurstPeriodSeconds = 5
	w := mustNew(t, Scenario{Kernel: mainline(4, 1), Threshold: 100, Groups: []Group{g}, Events: events})
	w.Run(time.Minute, nil)
	// five seconds at the cap cost 5 s x 1 CPU above the limit
	most := 0.5*60 + 5
	if used := w.Kernel.Used(g.Path).Seconds(); used > most+0.3 || used < most-1 {
		t.Errorf("used %.2f CPU seconds in a minute, the budget allows %.2f", used, most)
	}
	if got := w.Kernel.Bandwidth(g.Path).Quota; got != g.Quota {
		t.Errorf("quota %v after the budget was used up, want the limit %v", got, g.Quota)
	}
}

// TestFiftyAtOnce: containers that are throttled in the same moment share the headroom.
func TestFiftyAtOnce(t *testing.T) { polledAndSubscribed(t, fiftyAtOnce) }

func fiftyAtOnce(t *testing.T, events bool) {
	var groups []Group
	for i := range 50 {
		groups = append(groups, Group{Path: fmt.Sprintf("/lab/c%02d", i), Quota: 20 * ms, Period: 100 * ms,
			Strategy: with(strategy.CFSQuotaBurstOnly), Load: sim.Spin(1)})
	}
	w := mustNew(t, Scenario{Kernel: mainline(32, 4), Threshold: 50, Groups: groups, Events: events})
	busiest, from, last := 0.0, w.start(), time.Duration(0)
	w.Run(20*time.Second, func(agent.Turn) {
		if elapsed := w.Kernel.Now().Sub(from); elapsed >= time.Second {
			busiest = max(busiest, (w.Kernel.Busy()-last).Seconds()/elapsed.Seconds())
			from, last = w.Kernel.Now(), w.Kernel.Busy()
		}
	})
	if busiest < 12 || busiest > 14.8 {
		t.Errorf("the node used up to %.2f of 32 CPUs, want close below 90 %% of the threshold of 16", busiest)
	}
}

// TestGuardTakesBack: a neighbour without a limit pushes the node over its threshold; raises go, within 1.5 s, and do
// not oscillate.
func TestGuardTakesBack(t *testing.T) { polledAndSubscribed(t, guardTakesBack) }

func guardTakesBack(t *testing.T, events bool) {
	hog := Group{Path: "/lab/hog", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
		Load: sim.Spin(2)}
	noise := Group{Path: "/lab/noise", Quota: 390 * ms, Period: 100 * ms, Strategy: with(strategy.None),
		Load: sim.Script(3, job(10), job(10), job(10))}
	w := mustNew(t, Scenario{Kernel: mainline(4, 3), Threshold: 50, Groups: []Group{hog, noise}, Events: events})
	w.Run(10*time.Second, nil)
	if w.Kernel.Bandwidth(hog.Path).Quota <= hog.Quota {
		t.Fatal("never raised")
	}
	w.Run(2500*time.Millisecond, nil)
	if got := w.Kernel.Bandwidth(hog.Path).Quota; got != hog.Quota {
		t.Errorf("quota %v under overload, want the limit", got)
	}
	before := len(w.Kernel.Writes())
	w.Run(30*time.Second, nil)
	if n := len(w.Kernel.Writes()) - before; n > 0 {
		t.Errorf("%d writes while the node was overloaded all the time", n)
	}
}

// job is a thread that spins for a minute from second at on.
func job(at int) sim.Job {
	return sim.Job{At: time.Duration(at) * time.Second, Cost: sim.Forever, For: time.Minute}
}

func TestNoneIsPassive(t *testing.T) { polledAndSubscribed(t, noneIsPassive) }

func noneIsPassive(t *testing.T, events bool) {
	w := mustNew(t, Scenario{Kernel: mainline(2, 1), Threshold: 80, Events: events,
		Groups: []Group{service("/lab/a", strategy.None)}})
	before := len(w.Kernel.Writes())
	w.Run(30*time.Second, nil)
	if n := len(w.Kernel.Writes()) - before; n != 0 {
		t.Errorf("%d writes under policy none", n)
	}
}

// TestPodLimitBelowItsContainers: the pod's own limit throttles, so the pod is raised.
func TestPodLimitBelowItsContainers(t *testing.T) { polledAndSubscribed(t, podLimitBelow) }

func podLimitBelow(t *testing.T, events bool) {
	for _, version := range []int{1, 2} {
		k := mainline(4, 6)
		k.Version = version
		a := Group{Path: "/kube/pod/a", Pod: "/kube/pod", Quota: 100 * ms, Period: 100 * ms, Load: sim.Spin(1),
			Strategy: with(strategy.CFSQuotaBurstOnly)}
		b := a
		b.Path = "/kube/pod/b"
		w := mustNew(t, Scenario{Kernel: k, Threshold: 100, Groups: []Group{a, b}, Events: events,
			PodQuota: map[string]time.Duration{"/kube/pod": 120 * ms}})
		w.Run(10*time.Second, nil)
		if got := w.Kernel.Used("/kube/pod").Seconds() / 10; got < 1.6 {
			t.Errorf("v%d: the pod used %.2f CPUs, its containers want 2, its limit is 1.2", version, got)
		}
		w.Stop()
		if got := w.Kernel.Bandwidth("/kube/pod").Quota; got != 120*ms {
			t.Errorf("v%d: pod quota %v after the end", version, got)
		}
	}
}

// TestPodFollowsAbsolutely: the pod's quota is what its containers make it, at every turn.
func TestPodFollowsAbsolutely(t *testing.T) {
	a := service("/kube/pod/a", strategy.Auto)
	b := service("/kube/pod/b", strategy.CFSQuotaBurstOnly)
	a.Pod, b.Pod = "/kube/pod", "/kube/pod"
	w := mustNew(t, Scenario{Kernel: mainline(8, 9), Threshold: 100, Groups: []Group{a, b}})
	raised := false
	w.Run(time.Minute, func(agent.Turn) {
		sum := w.Kernel.Bandwidth(a.Path).Quota + w.Kernel.Bandwidth(b.Path).Quota
		if got := w.Kernel.Bandwidth("/kube/pod").Quota; got != sum {
			t.Fatalf("pod %v, containers %v together", got, sum)
		}
		raised = raised || sum > 100*ms
	})
	if !raised {
		t.Error("never raised: it proves nothing")
	}
}

// TestUnlimitedPodStaysUnlimited: -1 stays -1.
func TestUnlimitedPodStaysUnlimited(t *testing.T) {
	a := service("/kube/pod/a", strategy.Auto)
	a.Pod = "/kube/pod"
	w := mustNew(t, Scenario{Kernel: mainline(8, 9), Threshold: 100, Groups: []Group{a},
		PodQuota: map[string]time.Duration{"/kube/pod": cpu.Unlimited}})
	w.Run(30*time.Second, func(agent.Turn) {
		if b := w.Kernel.Bandwidth("/kube/pod"); b.Limited() || b.Burst != 0 {
			t.Fatalf("the pod has %+v", b)
		}
	})
}

// snapshot is every file of the scenario's groups that may be written.
func (w *World) snapshot() map[string]string {
	files := map[string]string{}
	names := []string{"cpu.max", "cpu.max.burst"}
	if w.scene.Kernel.Version == 1 {
		names = []string{"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"}
	}
	for _, g := range w.Kernel.Groups() {
		for _, n := range names {
			name := g[1:] + "/" + n
			if w.scene.Kernel.Version == 1 {
				name = "cpu/" + name
			}
			if data, err := w.Kernel.ReadFile(name); err == nil {
				files[name] = string(data)
			}
		}
	}
	return files
}

// errCrash stands for kill -9 in the middle of a write.
var errCrash = errors.New("crash")

// TestFaultAtEveryWrite: after any fault at the n-th write, every value of ours is restored in the end.
func TestFaultAtEveryWrite(t *testing.T) {
	scene := func(seed uint64) Scenario {
		a, b := service("/kube/pod/a", strategy.Auto), Group{Path: "/lab/hog", Quota: 30 * ms, Period: 100 * ms,
			Strategy: with(strategy.Auto), Load: sim.OnOff(3*time.Second, 6*time.Second, 2)}
		a.Pod = "/kube/pod"
		return Scenario{Kernel: mainline(4, seed), Threshold: 100, Groups: []Group{a, b}}
	}
	for seed := range uint64(4) {
		for _, fault := range []string{"refused", "crash before", "crash after"} {
			for n := range 24 {
				t.Run(fmt.Sprintf("%s/%d/%d", fault, seed, n), func(t *testing.T) { faulty(t, scene(seed), fault, n) })
			}
		}
	}
}

func faulty(t *testing.T, s Scenario, fault string, n int) {
	w := mustNew(t, s)
	before := w.snapshot()
	count, hit := 0, false
	w.Kernel.Fault = func(op, name string, data []byte) error {
		if op != "write" || hit {
			return nil
		}
		if count++; count <= n {
			return nil
		}
		hit = true
		switch fault {
		case "refused":
			return &syscallError{syscall.EINVAL}
		case "crash after":
			if err := w.Kernel.ForeignWrite(name, string(data)); err != nil {
				return err
			}
		}
		panic(errCrash)
	}
	w.runThroughCrash(t, 20*time.Second)
	w.Stop()
	if diff := cmp.Diff(before, w.snapshot()); diff != "" {
		t.Errorf("not put back: %s", diff)
	}
}

type syscallError struct{ error }

func (e *syscallError) Unwrap() error { return e.error }

// runThroughCrash runs, and starts another agent when the first one dies.
func (w *World) runThroughCrash(t *testing.T, d time.Duration) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if r != any(errCrash) {
				panic(r)
			}
			if err := w.Restart(); err != nil {
				t.Fatal(err)
			}
			w.Run(5*time.Second, nil)
		}
	}()
	w.Run(d, nil)
}

// TestForeignWriteStays: another program's value is left alone, at run time and at the end; the owner's limit is
// not foreign.
func TestForeignWriteStays(t *testing.T) {
	g := Group{Path: "/lab/a", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
		Load: sim.Spin(2)}
	for _, version := range []int{1, 2} {
		k := mainline(4, 8)
		k.Version = version
		w := mustNew(t, Scenario{Kernel: k, Threshold: 100, Groups: []Group{g}})
		w.Run(5*time.Second, nil)
		if err := w.Limit(g.Path, 70*ms, g.Period); err != nil {
			t.Fatal(err)
		}
		w.Run(10*time.Second, nil)
		w.Stop()
		if got := w.Kernel.Bandwidth(g.Path).Quota; got != 70*ms {
			t.Errorf("v%d: a foreign 70ms became %v", version, got)
		}

		w = mustNew(t, Scenario{Kernel: k, Threshold: 100, Groups: []Group{g}})
		w.Run(5*time.Second, nil)
		if err := w.Limit(g.Path, g.Quota, g.Period); err != nil {
			t.Fatal(err)
		}
		w.Run(300*time.Millisecond, nil)
		if got := w.Kernel.Bandwidth(g.Path).Quota; got != g.Quota {
			t.Errorf("v%d: the owner's reset was overwritten at once with %v", version, got)
		}
		w.Run(5*time.Second, nil)
		if got := w.Kernel.Bandwidth(g.Path).Quota; got == g.Quota {
			t.Errorf("v%d: not applied again after the owner's reset", version)
		}
	}
}

// TestNoLongerManaged: a group that the configuration no longer names is put back.
func TestNoLongerManaged(t *testing.T) {
	w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 100, Groups: []Group{
		service("/lab/a", strategy.Auto), service("/lab/b", strategy.Auto)}})
	before := w.snapshot()
	w.Run(5*time.Second, nil)
	w.place.pods = w.place.pods[:1]
	w.Run(time.Second, nil)
	if b := w.Kernel.Bandwidth("/lab/b"); b.Burst != 0 || b.Quota != 50*ms {
		t.Errorf("still %+v", b)
	}
	if b := w.Kernel.Bandwidth("/lab/a"); b.Burst == 0 {
		t.Error("the other one lost its burst")
	}
	w.Kernel.RemoveGroup("/lab/a")
	w.Run(time.Second, nil)
	w.Stop()
	maps.DeleteFunc(before, func(name, _ string) bool { return strings.Contains(name, "lab/a/") })
	if diff := cmp.Diff(before, w.snapshot()); diff != "" {
		t.Error(diff)
	}
}

// TestResizeWhileThrottled: a limit that changes while the container is throttled is the one that is restored, also
// when the agent dies in the same turn.
func TestResizeWhileThrottled(t *testing.T) {
	g := Group{Path: "/lab/a", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
		Load: sim.Spin(2)}
	for seed := range uint64(10) {
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 100, Groups: []Group{g}})
		w.Run(time.Second, nil)
		w.Stop() // at the limit: a change is a resize
		if err := w.Limit(g.Path, 70*ms, g.Period); err != nil {
			t.Fatal(err)
		}
		raised := false
		w.Run(5*time.Second, func(agent.Turn) {
			if raised = w.Kernel.Bandwidth(g.Path).Quota > 70*ms; raised {
				if err := w.Restart(); err != nil {
					t.Fatal(err)
				}
				if got := w.Kernel.Bandwidth(g.Path).Quota; got != 70*ms {
					t.Fatalf("seed %d: %v after the crash, want the new limit of 70ms", seed, got)
				}
			}
		})
	}
}
