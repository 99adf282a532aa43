package loadline

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLargestBurst(t *testing.T) {
	o := Options{Periods: 200000}
	for _, c := range []struct {
		name      string
		node      Node
		target    float64
		low, high float64
	}{
		// facts: m=10 u=50 % breaks 0.135 % of the periods with a burst of 100 %.
		{"nearly a quota", same(t, 10, 1, exp(t, 0.05)), 0.999, 0.75, 0.95},
		{"a quota and more", same(t, 10, 1, exp(t, 0.05)), 0.998, 1.1, 1.5},
		{"any", same(t, 20, 1, exp(t, 0.025)), 0.999, inf, inf},
		// J of two quotas is 1.98 %, but P is 2.06 %.
		{"seen by the simulation only", same(t, 20, 1, exp(t, 0.7/20)), 0.98, 1.7, 1.99},
		// J of any burst is 3.85 %, but P is 4.18 %.
		{"any, but for the simulation", same(t, 20, 1, exp(t, 0.7/20)), 0.96, 2, 10},
		{"hardly any", same(t, 5, 1, exp(t, 0.18)), 0.999, 0, 0.02},
	} {
		b := must[float64](t)(LargestBurst(c.node, c.target, o))
		if b < c.low || b > c.high {
			t.Errorf("%s: %v, want %v to %v", c.name, b, c.low, c.high)
		}
		if math.IsInf(b, 1) || b == 0 {
			continue
		}
		kept := simulate(t, c.node.bursting(b), o).Miss.Value
		more := simulate(t, c.node.bursting(b*1.1), o).Miss.Value
		if kept > 1-c.target || more <= 1-c.target {
			t.Errorf("%s: burst %v breaks %v, a tenth more %v", c.name, b, kept, more)
		}
	}
	over := Node{Capacity: 1, Containers: []Container{{Quota: 0.8, Demand: exp(t, 0.4)},
		{Quota: 0.8, Demand: exp(t, 0.4)}}}
	near(t, "overcommitted", must[float64](t)(LargestBurst(over, 0.999, o)), 0, 0)
}

func TestMostPods(t *testing.T) {
	o := Options{Periods: 100000}
	c := Container{Quota: 1, Burst: 1, Demand: exp(t, 0.5)}
	last := 0
	for _, capacity := range []float64{4, 8, 16, 32} {
		m := must[int](t)(MostPods(c, capacity, 0.999, o))
		if m < last {
			t.Errorf("%d pods on %v CPUs, %d on less", m, capacity, last)
		}
		last = m
		j := func(m int) float64 {
			n := must[Node](t)(Homogeneous(m, float64(m), 1, c.Demand))
			n.Capacity = capacity
			return must[float64](t)(Coincidence(n, Offsets))
		}
		if j(m) > 0.001 || j(m+1) <= 0.001 {
			t.Errorf("%v CPUs: %d pods risk %v, one more %v", capacity, m, j(m), j(m+1))
		}
	}
	if last <= 32 { // at 32 the mean use is half of the capacity: more quota than CPUs can be given
		t.Errorf("%d pods on 32 CPUs", last)
	}
	near(t, "too large for the node",
		float64(must[int](t)(MostPods(Container{Quota: 3, Burst: 0, Demand: exp(t, 0.9)}, 1, 0.999, o))), 0, 0)
}

// What is left over of periods in which bursts coincided counts too: in runs of ten periods it is a third of P.
func TestRunsAreConfirmed(t *testing.T) {
	var runs []float64
	for _, x := range record(t, exp(t, 0.4), 1000, 5).samples {
		runs = append(runs, slices.Repeat([]float64{x}, 10)...)
	}
	c := Container{Quota: 1, Burst: 1, Demand: must[*Recording](t)(NewRecording(runs))}
	const capacity = 16
	o := Options{Periods: 200000, Resamples: -1}
	play := func(m int) Result { return simulate(t, Node{capacity, slices.Repeat([]Container{c}, m)}, o) }
	m := must[int](t)(MostPods(c, capacity, 0.99, o))
	kept, more := play(m), play(m+1)
	if more.Miss.Value < 1.4*more.Coincidence || more.Coincidence > 0.01 {
		t.Fatalf("P %v, J %v: it proves nothing", more.Miss.Value, more.Coincidence)
	}
	if kept.Miss.Value > 0.01 || more.Miss.Value <= 0.01 {
		t.Errorf("%d pods break %v, one more %v", m, kept.Miss.Value, more.Miss.Value)
	}
	n := Node{capacity, slices.Repeat([]Container{c}, m+1)}
	j := must[float64](t)(sure(n, 0.99, 1, 1))
	if p := must[float64](t)(sure(n, 0.99, more.Miss.Value/more.Coincidence, 1)); p > 0.6 || p >= j {
		t.Errorf("a node that does not keep the target does so in %v of the resamplings; by J in %v", p, j)
	}
}

func TestLimitFor(t *testing.T) {
	r := record(t, exp(t, 0.5), 20000, 3)
	for _, b := range []float64{0, 1} {
		q := must[float64](t)(LimitFor(r, 0.01, b))
		at := must[*History](t)(NewHistory(r, q)).Throttled(b * q)
		below := must[*History](t)(NewHistory(r, q*0.98)).Throttled(b * q * 0.98)
		if at > 0.01 || below <= 0.01 {
			t.Errorf("burst %v: at %v %v are throttled, 2 %% below %v", b, q, at, below)
		}
	}
	steady := must[*Recording](t)(NewRecording([]float64{1, 1, 1}))
	near(t, "steady demand", must[float64](t)(LimitFor(steady, 0.01, 0)), 1, 1e-5)
}

// Correlation turns the verdict between those rho at which facts have it far below and far above.
func TestTurningRho(t *testing.T) {
	o := Options{Periods: 100000}
	rho := must[float64](t)(TurningRho(same(t, 20, 1, exp(t, 0.025)), 0.999, o))
	if rho < 0.01 || rho > 0.1 { // 0.47 % at 0.1
		t.Errorf("turns at %v", rho)
	}
	near(t, "kept by none", must[float64](t)(TurningRho(same(t, 5, 1, exp(t, 0.14)), 0.999, o)), 0, 0)
	// A recording with memory, and its samples without it: the target between the two, and below both.
	n := same(t, 10, 1, waves(t, 0.05, 0.9))
	for target, known := range map[float64]bool{0.999: false, 0.99: true} {
		rho := must[float64](t)(TurningRho(n, target, o))
		if math.IsNaN(rho) == known || known && (rho < 0.02 || rho > 0.5) {
			t.Errorf("a recording with memory turns at %v for a target of %v", rho, target)
		}
	}
	near(t, "kept by all", must[float64](t)(TurningRho(same(t, 5, 0, exp(t, 0.02)), 0.999, o)), 1, 0)
}

// waves is a recording of exponential demand with a correlation from each period to the next.
func waves(t *testing.T, mean, phi float64) *Recording {
	chance := rand.New(rand.NewPCG(1, 1))
	samples, z := make([]float64, 100_000), chance.NormFloat64()
	for i := range samples {
		z = phi*z + math.Sqrt(1-phi*phi)*chance.NormFloat64()
		samples[i] = -mean * math.Log(math.Erfc(z/math.Sqrt2)/2)
	}
	return must[*Recording](t)(NewRecording(samples))
}

func TestAdvise(t *testing.T) {
	r := record(t, exp(t, 0.5), 4000, 9)
	a := must[Advice](t)(Advise(Question{Demand: r, Quota: 1, Pods: 20, Capacity: 20, Periods: 100000,
		Throttled: 0.07}))
	if !a.Enough || a.Largest < 1 || a.Granted != 1 || a.Needed > 1 || a.Saturated {
		t.Errorf("one quota of burst is enough: %+v", a)
	}
	near(t, "throttled without", a.Without.ThrottledWith, 0.203, 0.03)
	near(t, "throttled with", a.With.ThrottledWith, 0.041, 0.02)
	near(t, "sure", a.Sure, 1, 0.02)
	if a.Saving <= 0 || a.LimitBurst >= a.Limit || a.MostPods < 20 {
		t.Errorf("the limit could be lower with burst: %+v", a)
	}
	a = must[Advice](t)(Advise(Question{Demand: r, Quota: 1, Pods: 5, Capacity: 5, Periods: 100000}))
	if a.Enough || a.Granted >= a.Needed || a.Saving >= 0 || a.Sure > 0.99 && a.Largest < 1 {
		t.Errorf("five of them are too few to burst: %+v", a)
	}
	if a.LimitBurst != must[float64](t)(LimitFor(r, 0.01, a.Granted)) {
		t.Errorf("the limit is for another burst than the one that is granted: %+v", a)
	}
	// The same demand in other units.
	milli := must[*Recording](t)(r.Scale(1000))
	b := must[Advice](t)(Advise(Question{Demand: milli, Quota: 1000, Pods: 5, Capacity: 5000, Periods: 100000}))
	near(t, "burst in other units", b.Largest, a.Largest, 1e-9)
	a = must[Advice](t)(Advise(Question{Demand: r, Quota: 0.4, Pods: 5, Capacity: 5}))
	if !a.Saturated || a.Enough || a.Limit <= 0.5 || a.Saving >= 0 || a.LimitBurst != a.Limit {
		t.Errorf("the mean demand is above the limit: %+v", a)
	}
}

func TestRefusesQuestions(t *testing.T) {
	r := record(t, exp(t, 0.5), 100, 9)
	good := Question{Demand: r, Quota: 1, Pods: 2, Capacity: 2}
	for name, change := range map[string]func(*Question){
		"no demand": func(q *Question) { q.Demand = nil }, "no pods": func(q *Question) { q.Pods = 0 },
		"no limit": func(q *Question) { q.Quota = inf }, "limit NaN": func(q *Question) { q.Quota = math.NaN() },
		"target 1": func(q *Question) { q.Target = 1 }, "target NaN": func(q *Question) { q.Target = math.NaN() },
		"throttled 1": func(q *Question) { q.Throttled = 1 }, "burst": func(q *Question) { q.MostBurst = -1 },
		"capacity": func(q *Question) { q.Capacity = 0 },
	} {
		q := good
		change(&q)
		if _, err := Advise(q); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A limit at half of the demand: the recording shows the limit, and the throttled time what is missing.
func TestUncensorHalfOfTheDemand(t *testing.T) {
	used, throttled := make([]float64, 100), make([]float64, 100)
	for i := range used {
		used[i], throttled[i] = 0.5, 0.5 // one thread that always wants to run
	}
	u := must[Uncensored](t)(Uncensor(used, throttled))
	near(t, "low", u.Low, 0.5, 1e-12)
	near(t, "high", u.High, 1, 1e-12)
	near(t, "likely", u.Likely.Mean(), 1, 1e-12)
	near(t, "saturated", u.Saturated, 1, 1e-12)
}

// Work that waits is done later: the estimate conserves it, and puts it where it came.
func TestUncensorWorkThatWaits(t *testing.T) {
	demand := record(t, exp(t, 0.6), 5000, 4).samples
	demand[len(demand)-1], demand[len(demand)-2] = 0, 0
	const quota = 1
	used, throttled, backlog := make([]float64, len(demand)), make([]float64, len(demand)), 0.0
	for i, x := range demand {
		used[i] = min(backlog+x, quota)
		backlog = max(0, backlog+x-quota)
		throttled[i] = backlog
	}
	u := must[Uncensored](t)(Uncensor(used, throttled))
	for i, x := range u.Likely.samples {
		if math.Abs(x-demand[i]) > 1e-9 {
			t.Fatalf("period %d: %v, want %v", i, x, demand[i])
		}
	}
	near(t, "low", u.Low, u.Likely.Mean(), 1e-9)
	if u.High < u.Low*1.05 || u.Throttled < 0.3 || u.Saturated != 0 {
		t.Errorf("%+v", u)
	}
	// Threads that stood still for longer than they had work to do change little.
	for i := range throttled {
		if throttled[i] > 0 {
			throttled[i] = 3
		}
	}
	u = must[Uncensored](t)(Uncensor(used, throttled))
	near(t, "the mean is conserved", u.Likely.Mean(), u.Low, 1e-9)
	for _, bad := range [][]float64{{1, math.NaN()}, {1, -1}, {1}} {
		if _, err := Uncensor([]float64{1, 1}, bad); !errors.Is(err, ErrInput) {
			t.Errorf("throttled %v: %v", bad, err)
		}
	}
	for _, bad := range [][]float64{{1, math.NaN()}, {3, -1}} {
		if _, err := Uncensor(bad, []float64{0, 0}); !errors.Is(err, ErrInput) {
			t.Errorf("used %v: %v", bad, err)
		}
	}
}
