package loadline

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// mixed is a node of unlike containers.
func mixed(t testing.TB) Node {
	t.Helper()
	return Node{Capacity: 4, Containers: []Container{
		{Quota: 1, Burst: 1, Demand: exp(t, 0.6)},
		{Quota: 1, Burst: 0.5, Demand: exp(t, 0.6)},
		{Quota: 0.5, Burst: 0.25, Demand: pareto4(t, 0.35)},
		{Quota: 0.5, Burst: inf, Demand: must[Law](t)(Poisson(0.3, 0.1))},
		{Quota: 1, Burst: 2, Demand: record(t, exp(t, 0.7), 2000, 1)},
	}}
}

func same(t testing.TB, m int, burst float64, l Law) Node {
	t.Helper()
	return must[Node](t)(Homogeneous(m, 1, burst, l))
}

func simulate(t testing.TB, n Node, o Options) Result {
	t.Helper()
	return must[Result](t)(Simulate(n, o))
}

// The same arguments give the same result to the bit, for any number of CPUs.
func TestSimulateIsDeterministic(t *testing.T) {
	for _, o := range []Options{
		{Seed: 1}, {Seed: 1, Rule: Published}, {Seed: 1, Replay: Blocks}, {Seed: 1, Replay: IID, Plain: true},
		{Seed: 1, Rho: 0.2},
	} {
		o.Periods, o.Resamples = 12800, 4
		before := runtime.GOMAXPROCS(1)
		one := simulate(t, mixed(t), o)
		runtime.GOMAXPROCS(7)
		seven := simulate(t, mixed(t), o)
		runtime.GOMAXPROCS(before)
		if diff := cmp.Diff(one, seven, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%+v: %s", o, diff)
		}
		o.Seed = 2
		if other := simulate(t, mixed(t), o); other.Miss == one.Miss {
			t.Errorf("%+v: the seed does not matter", o)
		}
	}
}

// The counts of a seed are the same on every platform: they were counted on amd64, where GOAMD64=v3 (with fused
// multiplications, as on arm64) and GOARCH=386 give the same.
func TestCountsOfASeed(t *testing.T) {
	n := mixed(t)
	var got []int64
	for _, o := range []Options{{}, {Rule: Published}, {Replay: Blocks}, {Replay: IID}, {Rho: 0.3}} {
		o.Periods, o.Seed = 64000, 42
		p := prepare(n, o)
		var sum tally
		throttled := int64(0)
		for _, r := range p.run() {
			sum.missed += r.missed
			sum.ages += r.ages
			for _, c := range r.containers {
				throttled += c.throttled
			}
		}
		got = append(got, sum.missed, sum.ages, throttled)
	}
	want := []int64{
		4958, 6115, 0,
		4958, 6115, 26501,
		5211, 6616, 5413,
		5302, 6812, 0,
		10109, 16511, 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The Lindley form is the model that shares out: the same demands break the same periods.
func TestLindleyIsTheFullModel(t *testing.T) {
	n := mixed(t)
	for name, n := range map[string]Node{
		"mixed": n, "room to spare": {Capacity: 5, Containers: n.Containers}, "m=5 u=90%": same(t, 5, 1, exp(t, 0.9/5)),
		"m=20 u=70%": same(t, 20, 2, pareto4(t, 0.7/20)),
	} {
		o := Options{Periods: 50000, Plain: true, Resamples: -1, Replay: Blocks}
		lindley := simulate(t, n, o)
		o.Interference = true
		full := simulate(t, n, o)
		if lindley.Miss != full.Miss || lindley.WCET != full.WCET {
			t.Errorf("%s: %v, %v by Lindley, %v, %v by sharing out", name, lindley.Miss, lindley.WCET, full.Miss,
				full.WCET)
		}
		near(t, name+": waiting", lindley.Waiting, full.Waiting, 1e-9)
		// What the containers wait for each other is what waits on the node.
		sum := 0.0
		for i, c := range full.Containers {
			sum += c.Interference * n.Containers[i].Demand.Mean()
		}
		near(t, name+": sum of interference", sum, full.Waiting, 1e-9)
	}
}

// A queue that is nearly full takes longer to fill than a replica lasts.
func TestTooShortForTheQueue(t *testing.T) {
	for u, c := range map[float64]struct {
		periods int64
		short   bool
	}{0.9: {100_000, false}, 0.99: {100_000, true}} {
		n := same(t, 2, inf, exp(t, u/2))
		got, truth := simulate(t, n, Options{Periods: c.periods}), simulate(t, n, Options{Periods: 10_000_000})
		if strings.Contains(got.Method, "too short") != c.short || strings.Contains(truth.Method, "too short") ||
			(got.WCET.Value < 0.7*truth.WCET.Value) != c.short {
			t.Errorf("u %v: E(WCET) %v, %s; in more periods %v, %s", u, got.WCET.Value, got.Method, truth.WCET.Value,
				truth.Method)
		}
	}
}

// Watched counts are the exact law's.
func TestWatchedContainers(t *testing.T) {
	n := same(t, 4, 1, exp(t, 0.6/4))
	o := simulate(t, n, Options{Interference: true, Periods: 200000})
	q := must[*Queue](t)(NewQueue(n.Containers[0].Demand, 0.25))
	p := prepare(n, Options{Interference: true, Periods: 200000})
	p.laws[0] = nil
	counted := p.outcomes(p.run())[0]
	near(t, "throttled by counting", counted.ThrottledWith, q.Throttled(0.25), 3e-3)
	near(t, "throttled without a burst, by counting", counted.ThrottledWithout, q.Throttled(0), 3e-3)
	near(t, "delay without a burst, by counting", counted.DelayWithout, q.Delay(0), 0.05*q.Delay(0))
	near(t, "throttled", o.Containers[0].ThrottledWith, q.Throttled(0.25), 0)
	near(t, "delay", o.Containers[0].DelayWithout, q.Delay(0), 0)
	r := record(t, exp(t, 0.15), 4000, 5)
	n = same(t, 4, 1, r)
	blocks, offsets := simulate(t, n, Options{Replay: Blocks}), simulate(t, n, Options{})
	near(t, "throttled in blocks", blocks.Containers[0].ThrottledWith, offsets.Containers[0].ThrottledWith, 2e-3)
	near(t, "delay in blocks", blocks.Containers[0].DelayWith, offsets.Containers[0].DelayWith, 5e-3)
	near(t, "miss in blocks", blocks.Miss.Value, offsets.Miss.Value, 0.1*offsets.Miss.Value)
}

// With the same random numbers more burst never breaks fewer periods.
func TestCommonRandomNumbers(t *testing.T) {
	last := -1.0
	for _, b := range []float64{0, 0.05, 0.1, 0.5, 0.55, 1, 2, inf} {
		r := simulate(t, same(t, 10, b, exp(t, 0.07)), Options{Periods: 64000, Plain: true})
		if r.Miss.Value < last {
			t.Errorf("burst %v breaks %v, less than less burst: %v", b, r.Miss.Value, last)
		}
		last = r.Miss.Value
	}
}

// The control variate takes most of the noise away, and nothing of the value (facts: variance / 57 for m=20, u=70 %).
func TestControlVariate(t *testing.T) {
	n := same(t, 20, 1, exp(t, 0.7/20))
	plain := simulate(t, n, Options{Periods: 300000, Plain: true})
	controlled := simulate(t, n, Options{Periods: 300000})
	wide, narrow := plain.Miss.High-plain.Miss.Low, controlled.Miss.High-controlled.Miss.Low
	if ratio := wide / narrow; ratio < 5 || ratio > 12 {
		t.Errorf("intervals of %.3g and %.3g", wide, narrow)
	}
	if z := (plain.Miss.Value - controlled.Miss.Value) / (wide / 4); math.Abs(z) > 3.5 {
		t.Errorf("%v without, %v with the control", plain.Miss, controlled.Miss)
	}
	if controlled.Miss.Low > 0.005896 || controlled.Miss.High < 0.005896 {
		t.Errorf("%v does not hold the value of 48 million periods", controlled.Miss)
	}
}

// Recordings on one clock keep what they have to do with each other.
func TestAlignedReplay(t *testing.T) {
	var up, down []float64
	for i := range 1000 {
		up = append(up, 0.4*float64(1+i%2))
		down = append(down, 0.4*float64(2-i%2))
	}
	a, b := must[*Recording](t)(NewRecording(up)), must[*Recording](t)(NewRecording(down))
	node := func(first, second *Recording, clock int) Node {
		return Node{Capacity: 1.3, Containers: []Container{
			{Quota: 0.65, Burst: 0.65, Demand: first, Clock: clock}, {Quota: 0.65, Burst: 0.65, Demand: second,
				Clock: clock}}}
	}
	for _, replay := range []Replay{Offsets, Blocks} {
		near(t, "in turns", simulate(t, node(a, b, 1), Options{Replay: replay}).Miss.Value, 0, 0.001)
		near(t, "together", simulate(t, node(a, a, 1), Options{Replay: replay}).Miss.Value, 0.5, 0.03)
		near(t, "by chance", simulate(t, node(a, b, 0), Options{Replay: replay}).Miss.Value, 0.25, 0.1)
	}
	near(t, "J in turns", must[float64](t)(Coincidence(node(a, b, 1), Offsets)), 0, 1e-12)
	near(t, "J together", must[float64](t)(Coincidence(node(a, a, 1), Offsets)), 0.5, 1e-9)
	near(t, "J by chance", must[float64](t)(Coincidence(node(a, b, 0), Offsets)), 0.25, 1e-9)
}

// Correlation between containers: the same laws, far more risk (facts: m=10, u=50 %, b=1: 0.13 -> 1.2 -> 5.5 %).
func TestCopula(t *testing.T) {
	n := same(t, 10, 1, exp(t, 0.05))
	for _, c := range []struct{ rho, want float64 }{{1e-9, 0.0013}, {0.1, 0.012}, {0.3, 0.055}} {
		const periods = 300000
		r := simulate(t, n, Options{Rho: c.rho, Periods: periods})
		near(t, fmt.Sprintf("rho %v", c.rho), r.Miss.Value, c.want, 0.04*c.want+4*math.Sqrt(c.want/periods))
		if !math.IsNaN(r.Coincidence) {
			t.Error("there is no J for correlated demand")
		}
	}
	p := prepare(n, Options{Rho: 0.5, Periods: 1 << 18})
	p.laws[3] = nil // count
	q := must[*Queue](t)(NewQueue(exp(t, 0.05), 0.1))
	counted := p.outcomes(p.run())[3]
	near(t, "a container's own law", counted.ThrottledWith, q.Throttled(0.1), 2e-3)
	near(t, "without a burst", counted.ThrottledWithout, q.Throttled(0), 2e-3)
	near(t, "delay without a burst", counted.DelayWithout, q.Delay(0), 0.05*q.Delay(0))
}

func TestRefusesSimulations(t *testing.T) {
	good := same(t, 2, 1, exp(t, 0.3))
	with := func(change func(*Node)) Node {
		n := Node{good.Capacity, append([]Container(nil), good.Containers...)}
		change(&n)
		return n
	}
	one := func(change func(*Container)) Node { return with(func(n *Node) { change(&n.Containers[0]) }) }
	r := record(t, exp(t, 0.3), 100, 1)
	for name, c := range map[string]struct {
		node    Node
		options Options
		want    error
	}{
		"no capacity":       {with(func(n *Node) { n.Capacity = 0 }), Options{}, ErrInput},
		"NaN capacity":      {with(func(n *Node) { n.Capacity = math.NaN() }), Options{}, ErrInput},
		"no containers":     {Node{Capacity: 1}, Options{}, ErrInput},
		"quota 0":           {one(func(c *Container) { c.Quota = 0 }), Options{}, ErrInput},
		"quota NaN":         {one(func(c *Container) { c.Quota = math.NaN() }), Options{}, ErrInput},
		"quota too small":   {one(func(c *Container) { c.Quota = 1e-6 }), Options{}, ErrInput},
		"quota too large":   {one(func(c *Container) { c.Quota = 1e9 }), Options{}, ErrInput},
		"burst negative":    {one(func(c *Container) { c.Burst = -0.1 }), Options{}, ErrInput},
		"burst NaN":         {one(func(c *Container) { c.Burst = math.NaN() }), Options{}, ErrInput},
		"no demand":         {one(func(c *Container) { c.Demand = nil }), Options{}, ErrInput},
		"clock of a law":    {one(func(c *Container) { c.Clock = 1 }), Options{}, ErrInput},
		"different lengths": {with(func(n *Node) { clocks(t, n, r) }), Options{}, ErrInput},
		"u = 1":             {one(func(c *Container) { c.Demand = exp(t, 0.5) }), Options{}, ErrUnstable},
		"node overloaded":   {with(func(n *Node) { n.Capacity = 0.6 }), Options{}, ErrUnstable},
		"rule":              {good, Options{Rule: 2}, ErrInput},
		"replay":            {good, Options{Replay: 3}, ErrInput},
		"periods":           {good, Options{Periods: -1}, ErrInput},
		"too many periods":  {good, Options{Periods: 1 << 40}, ErrInput},
		"rho 1":             {good, Options{Rho: 1}, ErrInput},
		"rho NaN":           {good, Options{Rho: math.NaN()}, ErrInput},
		"rho negative":      {good, Options{Rho: -0.1}, ErrInput},
		"overcommitted":     {with(func(n *Node) { n.Capacity = 0.9 }), Options{Rule: Published}, ErrInput},
	} {
		if _, err := Simulate(c.node, c.options); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Homogeneous(0, 1, 1, exp(t, 1)); !errors.Is(err, ErrInput) {
		t.Errorf("m = 0: %v", err)
	}
	if _, err := Homogeneous(2, 1, -1, exp(t, 0.1)); !errors.Is(err, ErrInput) {
		t.Errorf("burst < 0: %v", err)
	}
}

// clocks puts two recordings of different lengths on one clock.
func clocks(t *testing.T, n *Node, r *Recording) {
	n.Containers[0].Demand, n.Containers[0].Clock = r, 1
	n.Containers[1].Demand, n.Containers[1].Clock = record(t, exp(t, 0.3), 101, 1), 1
}

func TestUnlimitedContainer(t *testing.T) {
	n := Node{Capacity: 2, Containers: []Container{
		{Quota: inf, Demand: exp(t, 0.4)}, {Quota: 1, Burst: 0, Demand: exp(t, 0.5)}}}
	r := simulate(t, n, Options{})
	// It breaks a period about where it alone wants more than what the other leaves.
	if r.Miss.Value < 0.03 || r.Miss.Value > 0.15 || r.Containers[0].ThrottledWith != 0 {
		t.Errorf("%+v", r)
	}
}
