package loadline

import (
	"errors"
	"testing"
)

// TestClasses: counted periods have the law of the samples that they were counted of.
func TestClasses(t *testing.T) {
	counts := []int64{5, 0, 3, 1, 0, 1}
	var samples []float64
	for i, n := range counts {
		for range n {
			samples = append(samples, 0.25*float64(i))
		}
	}
	l, r := must[Law](t)(Classes(0.25, counts)), must[*Recording](t)(NewRecording(samples))
	near(t, "mean", l.Mean(), r.Mean(), 1e-12)
	near(t, "variance", l.Variance(), r.Variance(), 1e-12)
	for _, x := range []float64{0, 0.1, 0.5, 0.9, 1.25, 2} {
		near(t, "excess", l.excess(x), r.excess(x), 1e-12)
	}
	for _, s := range []float64{0.95, 0.45, 0.15, 0.05} {
		near(t, "quantile", l.quantile(s), r.quantile(s), 1e-12)
	}
	for _, bad := range [][]int64{{}, {7}, {1, -1}} {
		if _, err := Classes(0.25, bad); !errors.Is(err, ErrInput) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := Classes(0, counts); !errors.Is(err, ErrInput) {
		t.Errorf("no width: %v", err)
	}
}

// TestClassesAdmit: what containers with counted demands admit is as often too much as in the simulation.
func TestClassesAdmit(t *testing.T) {
	counts := []int64{300, 200, 150, 120, 80, 60, 40, 20, 10, 10, 5, 5}
	l := must[Law](t)(Classes(0.25, counts))
	for _, c := range []struct{ quota, burst float64 }{{0.25, 1}, {0.5, 0}, {0.5, 0.5}, {0.75, 1}, {1, 0.25}, {2.75, 0},
		{3, 1}} {
		n := must[Node](t)(Homogeneous(6, 6*c.quota, c.burst/c.quota, l))
		n.Capacity *= 0.9
		got := must[float64](t)(Risk(n))
		if c.quota <= l.Mean() {
			near(t, "of full containers", got, 1, 1e-9)
			continue
		}
		s, err := Simulate(n, Options{Periods: 400_000, Replay: IID, Seed: 1, Resamples: -1})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		near(t, "risk", got, s.Coinciding.Value, 0.03*s.Coinciding.Value+1e-4)
	}
}

// TestNearlyFull: a container whose demand is next to its quota counts as one that is throttled for ever. Its lattice
// would have billions of points.
func TestNearlyFull(t *testing.T) {
	l := must[Law](t)(Classes(0.25, []int64{500_000_001, 0, 500_000_000}))
	n := must[Node](t)(Homogeneous(4, 1, 1, l))
	n.Capacity = 0.9
	near(t, "risk", must[float64](t)(Risk(n)), 1, 1e-9)
}
