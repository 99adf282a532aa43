package trial

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

func bound(cpus float64) strategy.Bound { return strategy.Bound{Set: true, CPUs: cpus} }

// scopes are the bounds that count for a group, by name.
func scopes(g Group, e strategy.ExtraCores) map[string]float64 {
	all := map[string]float64{}
	for name, b := range map[string]strategy.Bound{"pod " + cmp.Or(g.Pod, g.Path): e.PerPod,
		"namespace " + g.Tenant: e.PerNamespace, "node": e.PerNode} {
		if b.Set && name != "namespace " {
			all[name] = b.CPUs
		}
	}
	return all
}

// step is a change of what is used above limits, or may be used.
type step struct {
	at    time.Time
	above float64
}

// highest is the largest sum of steps at a time. Of periods that touch, one ends before the other begins.
func highest(steps []step) (most float64, at time.Time) {
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.above, b.above))
	})
	sum := 0.0
	for _, s := range steps {
		if sum += s.above; sum > most {
			most, at = sum, s.at
		}
	}
	return most, at
}

// handed lists what a container used above its limit, from when that was handed out to the end of the period: what
// its quota was above the limit when the period began, and then what each write granted.
func handed(w *World, g Group) (steps []step) {
	quota, next, micros, writes := g.Quota, 0, 0, w.Kernel.Writes()
	writes = slices.DeleteFunc(writes, func(x sim.Write) bool { return x.Group.Path != g.Path || x.Err != nil })
	rate := func(d time.Duration) float64 { return d.Seconds() / g.Period.Seconds() }
	for _, p := range w.Kernel.Periods(g.Path) {
		for ; next < len(writes) && writes[next].At.Before(p.From); next++ {
			if _, err := fmt.Sscan(writes[next].Data, &micros); err == nil &&
				!strings.Contains(writes[next].Name, "burst") {
				quota = time.Duration(micros) * time.Microsecond
			}
		}
		above := max(0, p.Used-g.Quota)
		if g.Strategy.Policy.Burst() { // what was saved up is the group's own
			above = max(0, above-g.Quota)
		}
		if above == 0 || w.waitedInVain(p) {
			continue
		}
		rest, from := above, p.From
		part := min(rest, max(0, quota-g.Quota))
		for i := next; ; i++ {
			last := i == len(writes) || !writes[i].At.Before(p.To)
			if last { // what is left is the last write's
				part = rest
			}
			steps = append(steps, step{from, rate(part)}, step{p.To, -rate(part)})
			if rest -= part; last || rest <= 0 {
				break
			}
			from, part = writes[i].At, min(rest, max(0, writes[i].Granted))
		}
	}
	return steps
}

// checkBounds compares what the containers of each pod, of each namespace and of the node used above their limits at
// one time, averaged over their periods, with the bounds. It returns the largest part of a bound.
func checkBounds(t *testing.T, w *World) (part float64) {
	t.Helper()
	steps, bounds := map[string][]step{}, map[string]float64{}
	for _, g := range w.scene.Groups {
		of := handed(w, g)
		for name, most := range scopes(g, w.scene.Extra) {
			bounds[name] = most
			steps[name] = append(steps[name], of...)
		}
	}
	for name, most := range bounds {
		got, at := highest(steps[name])
		if got > most+0.01 {
			t.Errorf("%s: %.3f CPUs above limits %v after the begin, the bound is %v", name, got, at.Sub(w.start()),
				most)
		}
		part = max(part, got/most)
	}
	return part
}

// checkRaises compares the quotas that stand with the bounds.
func checkRaises(t *testing.T, w *World) {
	t.Helper()
	sums, bounds := map[string]float64{}, map[string]float64{}
	for _, g := range w.scene.Groups {
		for name, most := range scopes(g, w.scene.Extra) {
			bounds[name] = most
			sums[name] += max(0, (w.Kernel.Bandwidth(g.Path).Quota-g.Quota).Seconds()/g.Period.Seconds())
		}
	}
	for name, most := range bounds {
		if sums[name] > most+1e-6 {
			t.Fatalf("%s: raises of %.4f CPUs %v after the begin, the bound is %v", name, sums[name],
				w.Kernel.Now().Sub(w.start()), most)
		}
	}
}

// manyHogs are containers of some pods and namespaces, with demands of every kind.
func manyHogs(rng *rand.Rand, policies ...strategy.Policy) []Group {
	var groups []Group
	for pod := range 2 + rng.IntN(4) {
		for i := range 1 + rng.IntN(3) {
			g := randomGroup(rng, fmt.Sprintf("/kube/pod%d/c%d", pod, i), fmt.Sprintf("/kube/pod%d", pod))
			g.Tenant, g.Period = fmt.Sprint("ns", pod%2), 100*ms
			g.Quota = time.Duration(10+rng.IntN(90)) * ms
			g.Strategy.Policy, g.Strategy.CFSQuotaBurstPeriodSeconds = policies[rng.IntN(len(policies))], -1
			groups = append(groups, g)
		}
		groups = append(groups, sandbox(groups[len(groups)-1]))
	}
	return groups
}

// TestBoundsOnManyMachines: whatever containers want, no pod, namespace or node ever uses or may use more CPUs above
// limits than its bound, by raises and refills together.
func TestBoundsOnManyMachines(t *testing.T) {
	near := uint64(0)
	machines := *seeds / 3
	for seed := range machines {
		rng := rand.New(rand.NewPCG(seed, 9))
		pick := func(low float64) strategy.Bound {
			if rng.IntN(3) == 0 {
				return strategy.Bound{}
			}
			return bound(low * (0.2 + rng.Float64()))
		}
		s := Scenario{Kernel: mainline(16, seed), Threshold: 100,
			Groups: manyHogs(rng, strategy.CFSQuotaBurstOnly, strategy.CFSQuotaBurstOnly, strategy.Auto),
			Events: seed/2%2 == 1, Ahead: seed/4%2 == 1,
			Extra: strategy.ExtraCores{PerPod: pick(0.8), PerNamespace: pick(1), PerNode: pick(1)}}
		w := mustNew(t, s)
		w.Run(15*time.Second, func(agent.Turn) { checkRaises(t, w); checkPods(t, w) })
		checkCaps(t, w)
		if checkBounds(t, w) > 0.9 {
			near++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, s.Extra)
		}
	}
	if near < machines/5 {
		t.Errorf("of %d machines only %d came near their bound: it proves little", machines, near)
	}
}

// sandbox is the container that each pod of Kubernetes has beside the others: it has no limit, no request and no work.
func sandbox(beside Group) Group {
	return Group{Path: beside.Pod + "/sandbox", Pod: beside.Pod, Tenant: beside.Tenant, Quota: cpu.Unlimited,
		Period: beside.Period, Load: sim.Script(1), Strategy: beside.Strategy}
}

// TestBoundIsUsed: a bound costs no more than it says. A hog has its limit and most of the bound, also where that is
// less than another quota, and two in two namespaces have half of it each, whoever came first.
func TestBoundIsUsed(t *testing.T) { polledAndSubscribed(t, boundIsUsed) }

func boundIsUsed(t *testing.T, events bool) {
	hog := func(name string, quota, at time.Duration) Group {
		return Group{Path: "/kube/" + name + "/c", Pod: "/kube/" + name, Tenant: name, Quota: quota, Period: 100 * ms,
			Strategy: with(strategy.CFSQuotaBurstOnly),
			Load:     sim.Script(2, sim.Job{At: at, Cost: sim.Forever}, sim.Job{At: at, Cost: sim.Forever})}
	}
	for _, c := range []struct {
		name   string
		extra  strategy.ExtraCores
		groups []Group
		want   []float64 // CPUs above the limit, each
	}{
		{"one", strategy.ExtraCores{PerPod: bound(0.6)}, []Group{hog("a", 50*ms, 0)}, []float64{0.6}},
		{"less than a quota", strategy.ExtraCores{PerPod: bound(0.3)}, []Group{hog("a", 50*ms, 0)}, []float64{0.3}},
		{"two, and the second comes late", strategy.ExtraCores{PerNode: bound(0.8)},
			[]Group{hog("a", 50*ms, 0), hog("b", 50*ms, 10*time.Second)}, []float64{0.4, 0.4}},
		{"each its own bound", strategy.ExtraCores{PerNamespace: bound(0.5)},
			[]Group{hog("a", 50*ms, 0), hog("b", 50*ms, 0)}, []float64{0.5, 0.5}},
		{"of a small limit", strategy.ExtraCores{PerPod: bound(0.05)}, []Group{hog("a", 10*ms, 0)}, []float64{0.05}},
		{"none", strategy.ExtraCores{PerNode: bound(0)}, []Group{hog("a", 50*ms, 0)}, []float64{0}},
	} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				s := Scenario{Kernel: mainline(8, seed), Events: events, Groups: c.groups, Extra: c.extra}
				usesBound(t, s, c.want)
			})
		}
	}
}

// usesBound checks that the groups of a scenario have that many CPUs above their limits, in pods with a sandbox.
func usesBound(t *testing.T, s Scenario, want []float64) {
	hogs := s.Groups
	for _, g := range hogs {
		s.Groups = append(s.Groups, sandbox(g))
	}
	s.Threshold = 100
	w := mustNew(t, s)
	w.Run(20*time.Second, nil)
	before := make([]time.Duration, len(hogs))
	for i, g := range hogs {
		before[i] = w.Kernel.Used(g.Path)
	}
	w.Run(20*time.Second, func(agent.Turn) { checkRaises(t, w) })
	checkBounds(t, w)
	for i, g := range hogs {
		got := (w.Kernel.Used(g.Path)-before[i]).Seconds()/20 - g.Quota.Seconds()/g.Period.Seconds()
		if got < 0.85*want[i]-0.01 || got > want[i]+0.01 {
			t.Errorf("%s has %.3f CPUs above its limit, want %v", g.Path, got, want[i])
		}
	}
}

// TestABoundThatIsLowered: raises that stand come down to it, and go when it is 0.
func TestABoundThatIsLowered(t *testing.T) {
	var groups []Group
	for i := range 4 {
		groups = append(groups, Group{Path: fmt.Sprintf("/lab/c%d", i), Quota: 50 * ms, Period: 100 * ms,
			Strategy: with(strategy.CFSQuotaBurstOnly), Load: sim.Spin(2)})
	}
	w := mustNew(t, Scenario{Kernel: mainline(8, 3), Threshold: 100, Groups: groups, Events: true})
	w.Run(5*time.Second, nil)
	if w.Agent.Status().Node.Granted < 3.5 {
		t.Fatalf("granted %v: it proves nothing", w.Agent.Status().Node.Granted)
	}
	for _, cpus := range []float64{3.4, 1, 0} {
		w.scene.Extra = strategy.ExtraCores{PerNode: bound(cpus)}
		w.Agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 100},
			Extra: w.scene.Extra}, nil)
		w.Run(3*time.Second, nil)
		checkRaises(t, w)
	}
}
