package loadline

import (
	"errors"
	"math"
	"testing"
)

var inf = math.Inf(1)

// must is for values that a test knows to be good.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func exp(t testing.TB, mean float64) Law { t.Helper(); return must[Law](t)(Exponential(mean)) }

func pareto4(t testing.TB, mean float64) Law { t.Helper(); return must[Law](t)(Pareto(mean, 4, inf)) }

// record makes a recording of independent draws from a law.
func record(t testing.TB, l Law, n int, seed uint64) *Recording {
	t.Helper()
	r := stream(seed)
	samples := make([]float64, n)
	for i := range samples {
		samples[i] = l.quantile((float64(r.word()>>11) + 0.5) / (1 << 53))
	}
	return must[*Recording](t)(NewRecording(samples))
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %.9g, want %.9g within %.2g", what, got, want, within)
	}
}

// A law's mean, variance and excess are what its quantile function says.
func TestLawsAgreeWithThemselves(t *testing.T) {
	for _, l := range []Law{
		exp(t, 0.7), pareto4(t, 0.7), must[Law](t)(Pareto(0.7, 4, 3)), must[Law](t)(Pareto(0.7, 2.5, 2)),
		must[Law](t)(Poisson(0.7, 0.1)), record(t, exp(t, 0.7), 1000, 1),
	} {
		const n = 100_000
		var mean, square, excess float64
		for i := range n {
			x := l.quantile((float64(i) + 0.5) / n)
			mean += x / n
			square += x * x / n
			excess += max(0, x-1) / n
		}
		near(t, l.String()+": mean", l.Mean(), mean, 1e-4)
		near(t, l.String()+": variance", l.Variance(), square-mean*mean, 2e-3)
		near(t, l.String()+": excess above 1", l.excess(1), excess, 1e-4)
		near(t, l.String()+": excess above 0", l.excess(0), l.Mean(), 1e-12)
	}
}

// What is drawn has the law's mean and tail.
func TestSamplers(t *testing.T) {
	for _, l := range []Law{exp(t, 0.5), pareto4(t, 0.5), must[Law](t)(Poisson(0.5, 0.1)),
		record(t, exp(t, 0.5), 500, 1)} {
		const n = 1 << 20
		x, r := make([]int64, n), stream(1)
		s := scale{1}
		newSampler(l, s).fill(x, &r)
		mean, above, edge := 0.0, 0.0, 0.65*float64(whole)
		for _, d := range x {
			mean += s.float(float64(d)) / n
			if float64(d) > edge {
				above += 1.0 / n
			}
		}
		want := 0.0 // the survival at which the quantile passes the edge
		for step := 0.5; step > 1e-9; step /= 2 {
			if l.quantile(want+step) > 0.65 {
				want += step
			}
		}
		near(t, l.String()+": mean", mean, l.Mean(), 4*math.Sqrt(l.Variance()/n))
		near(t, l.String()+": P(X > 0.65)", above, want, 4*math.Sqrt(want/n)+2e-3/float64(recordedLength(l)))
	}
}

func recordedLength(l Law) int {
	if r, ok := l.(*Recording); ok {
		return r.Len()
	}
	return 1 << 20
}

func TestPublishedParetoTail(t *testing.T) {
	// Seed 000 speaks of a maximum of about 500 % at u = 30 %: that is where the tail thins out, P(X > 5 q)
	// = 4e-6 (0.225/5)^4.
	l := pareto4(t, 0.3)
	near(t, "P(X > 5 quotas)", math.Pow(l.(pareto).least/5, 4), 4.1e-6, 1e-7)
	if l.quantile(1e-9) < 30 {
		t.Error("the tail is cut")
	}
	if cut := must[Law](t)(Pareto(0.3, 4, 5)); cut.quantile(1e-9) > 5 || cut.Mean() >= 0.3 {
		t.Errorf("the cut law reaches %v with mean %v", cut.quantile(1e-9), cut.Mean())
	}
}

func TestRefusesLaws(t *testing.T) {
	nan := math.NaN()
	errs := map[string]error{}
	law := func(name string) func(Law, error) { return func(_ Law, err error) { errs[name] = err } }
	law("mean 0")(Exponential(0))
	law("mean negative")(Exponential(-1))
	law("mean NaN")(Exponential(nan))
	law("mean Inf")(Exponential(inf))
	law("Pareto mean NaN")(Pareto(nan, 4, inf))
	law("alpha 2")(Pareto(1, 2, inf))
	law("alpha NaN")(Pareto(1, nan, inf))
	law("alpha Inf")(Pareto(1, inf, inf))
	law("cut below the least")(Pareto(1, 4, 0.7))
	law("cut NaN")(Pareto(1, 4, nan))
	law("Poisson mean 0")(Poisson(0, 1))
	law("job 0")(Poisson(1, 0))
	law("job NaN")(Poisson(1, nan))
	law("a million jobs")(Poisson(1, 1e-6))
	for name, samples := range map[string][]float64{
		"no samples": nil, "one sample": {1}, "all zero": {0, 0, 0}, "NaN": {1, nan}, "negative": {1, -1},
		"Inf":      {1, inf},
		"overflow": {1e308, 0},
	} {
		_, errs[name] = NewRecording(samples)
	}
	for name, err := range errs {
		if !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordingKeepsItsSamples(t *testing.T) {
	samples := []float64{3, 1, 2}
	r := must[*Recording](t)(NewRecording(samples))
	samples[0] = 9
	near(t, "mean", r.Mean(), 2, 0)
	near(t, "max", r.Max(), 3, 0)
	near(t, "scaled", must[*Recording](t)(r.Scale(2)).Mean(), 4, 0)
	near(t, "first", r.samples[0], 3, 0)
}

// A recording with a memory is resampled in blocks that are longer than it.
func TestBlockLength(t *testing.T) {
	if b := record(t, exp(t, 1), 3000, 1).block(); b > 20 {
		t.Errorf("blocks of %d for independent periods", b)
	}
	var slow []float64
	for i := range 3000 {
		slow = append(slow, 1+math.Sin(float64(i)/50))
	}
	if b := must[*Recording](t)(NewRecording(slow)).block(); b < 100 {
		t.Errorf("blocks of %d for waves of 314 periods", b)
	}
}

// TestQueueOfAHeavyTail: a power law does not die out on a wider circle. The figures are of simulations of 5 M periods.
func TestQueueOfAHeavyTail(t *testing.T) {
	for _, c := range []struct{ u, without, with float64 }{{0.7, 0.1248, 0.01531}, {0.9, 0.4925, 0.1399}} {
		q := must[*Queue](t)(NewQueue(pareto4(t, c.u), 1))
		near(t, "throttled without a burst", q.Throttled(0), c.without, 1e-3)
		near(t, "throttled with a burst", q.Throttled(1), c.with, 2e-4)
	}
}
