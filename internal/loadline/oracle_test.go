package loadline_test

import (
	"fmt"
	"math"
	"testing"

	"plimsoll/internal/loadline"
	"plimsoll/internal/loadline/published"
)

// oracle is a case for which the exact law and the simulation have to agree.
type oracle struct {
	name string
	node loadline.Node
}

// oracles are the published cells of bounded burst, and unequal nodes: mixed laws, quotas, bursts, and a capacity that
// is not the sum of the quotas.
func oracles(t *testing.T) []oracle {
	t.Helper()
	var list []oracle
	add := func(name string, n loadline.Node) { list = append(list, oracle{name, n}) }
	for _, c := range published.Cells() {
		n, err := c.Node()
		if err != nil {
			t.Fatal(err)
		}
		add(c.String(), n)
	}
	for i := range 16 {
		u, b := 0.5+0.05*float64(i%6), 0.25*float64(1+i%5)
		n := loadline.Node{Capacity: 1 + 0.05*float64(i%3)}
		for k := range 3 + i%4 {
			quota := 0.04 * float64(2+k)
			n.Containers = append(n.Containers, loadline.Container{Quota: quota, Burst: b * quota,
				Demand: law(t, k+i, u*quota)})
		}
		for n.Committed() < 0.95 {
			n.Containers = append(n.Containers, loadline.Container{Quota: 0.1, Burst: 0.1 * b,
				Demand: law(t, i, u*0.1)})
		}
		add(fmt.Sprintf("unequal %d: %d containers, u=%.2f b=%.2f C=%.2f", i, len(n.Containers), u, b, n.Capacity), n)
	}
	return list
}

func law(t *testing.T, k int, mean float64) loadline.Law {
	t.Helper()
	make := []func() (loadline.Law, error){
		func() (loadline.Law, error) { return loadline.Exponential(mean) },
		func() (loadline.Law, error) { return loadline.Pareto(mean, 4, math.Inf(1)) },
		func() (loadline.Law, error) { return loadline.Pareto(mean, 2.5, 6*mean) },
	}[k%3]
	l, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// J by FFT is J by Monte Carlo, in more than 50 cases; the strict P of a burst without bound likewise. Their z are
// those of a normal variable: none beyond 3.5 (one in 30 such tests, else),
// and together neither too far off nor too near.
func TestExactAgainstMonteCarlo(t *testing.T) {
	const periods = 400_000
	sum, count := 0.0, 0
	check := func(name string, exact float64, e loadline.Estimate) {
		sigma := max((e.High-e.Low)/4, math.Sqrt(max(exact, 1.0/periods)/periods))
		z := (e.Value - exact) / sigma
		sum += z * z
		count++
		if math.Abs(z) > 3.5 {
			t.Errorf("%s: %.6g exactly, %.6g simulated, z = %.1f", name, exact, e.Value, z)
		}
	}
	for i, o := range oracles(t) {
		r, err := loadline.Simulate(o.node, loadline.Options{Periods: periods, Seed: uint64(i), Plain: true,
			Resamples: -1})
		if err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		j, err := loadline.Coincidence(o.node, loadline.Offsets)
		if err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		check(o.name+": J", j, r.Coinciding)
		if !math.IsInf(o.node.Containers[0].Burst, 1) {
			continue
		}
		miss, wcet := loadline.Unbounded(o.node)
		check(o.name+": P", miss, r.Miss)
		check(o.name+": E", wcet, r.WCET)
	}
	rms := math.Sqrt(sum / float64(count))
	t.Logf("%d comparisons, rms of z %.2f", count, rms)
	if count < 80 || rms < 0.7 || rms > 1.25 {
		t.Errorf("%d comparisons, rms of z %.2f", count, rms)
	}
}
