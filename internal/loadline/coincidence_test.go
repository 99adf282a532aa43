package loadline

import (
	"errors"
	"fmt"
	"testing"
)

// J and the exact strict P of a burst without bound, as they were found by 48 million periods (docs/MODEL.md).
func TestCoincidenceKnownValues(t *testing.T) {
	for _, c := range []struct {
		law    func(testing.TB, float64) Law
		m      int
		u, b   float64
		j, tol float64
	}{
		{exp, 20, 0.7, 1, 0.005822, 1e-5}, {exp, 10, 0.5, 1, 0.001323, 3e-6}, {exp, 20, 0.5, 1, 1.15e-5, 1e-7},
		{exp, 20, 0.7, 2, 0.019768, 3e-5}, {pareto4, 20, 0.7, 2, 6.21e-5, 1e-6}, {pareto4, 5, 0.5, 1, 0.0001422, 1e-6},
		{pareto4, 20, 0.9, 1, 0.036487, 5e-5}, {exp, 20, 0.9, 1, 0.11593, 2e-4}, {exp, 20, 0.7, 0, 0, 0},
	} {
		n := same(t, c.m, c.b, c.law(t, c.u/float64(c.m)))
		name := fmt.Sprintf("%v m=%d u=%v b=%v", n.Containers[0].Demand, c.m, c.u, c.b)
		near(t, name, must[float64](t)(Coincidence(n, Offsets)), c.j, c.tol)
		near(t, name+", roughly", must[float64](t)(Risk(n)), c.j, 0.02*c.j)
	}
	for _, c := range []struct {
		m             int
		u, miss, wcet float64
	}{{5, 0.5, 0.03160, 1.0354}, {5, 0.7, 0.2211, 1.4298}, {5, 0.9, 0.6678, 8.943}, {20, 0.7, 0.04178, 1.0476},
		{20, 0.9, 0.4623, 2.854}} {
		miss, wcet := Unbounded(same(t, c.m, inf, exp(t, c.u/float64(c.m))))
		near(t, fmt.Sprintf("m=%d u=%v: P", c.m, c.u), miss, c.miss, 3e-4*c.miss+5e-5)
		near(t, fmt.Sprintf("m=%d u=%v: E", c.m, c.u), wcet, c.wcet, 3e-4*c.wcet)
	}
}

func TestUnboundedWithRoom(t *testing.T) {
	steady := must[*Recording](t)(NewRecording([]float64{0.1, 0.1}))
	miss, wcet := Unbounded(same(t, 4, inf, steady))
	if miss > 1e-10 || wcet < 1 || wcet > 1+1e-9 {
		t.Errorf("P %v, E %v", miss, wcet)
	}
}

// Unequal containers (facts: J 1.0066 %, by Monte Carlo 1.0061 %).
func TestCoincidenceOfUnequal(t *testing.T) {
	n := Node{Capacity: 1}
	for range 5 {
		n.Containers = append(n.Containers, Container{Quota: 0.12, Burst: 0.12, Demand: exp(t, 0.072)})
	}
	for range 4 {
		n.Containers = append(n.Containers, Container{Quota: 0.10, Burst: 0.05, Demand: pareto4(t, 0.07)})
	}
	j := must[float64](t)(Coincidence(n, Offsets))
	near(t, "J", j, 0.01006, 5e-5)
	turned := Node{Capacity: 1}
	for i := range n.Containers {
		turned.Containers = append(turned.Containers, n.Containers[len(n.Containers)-1-i])
	}
	near(t, "J in another order", must[float64](t)(Coincidence(turned, Offsets)), j, 1e-12)
	for i := range turned.Containers {
		c := &turned.Containers[i]
		c.Quota, c.Burst = c.Quota*8, c.Burst*8
		c.Demand = map[bool]Law{true: exp(t, 0.576), false: pareto4(t, 0.56)}[c.Quota > 0.9]
	}
	turned.Capacity = 8
	near(t, "J in another unit", must[float64](t)(Coincidence(turned, Offsets)), j, 1e-9)
}

// A recording's J, counted by hand: two containers that are at 1 in a quarter of their periods, for a capacity of 1.5.
func TestCoincidenceOfRecordings(t *testing.T) {
	r := must[*Recording](t)(NewRecording([]float64{1, 0, 0, 0}))
	n := Node{Capacity: 1.5, Containers: []Container{{Quota: 0.75, Burst: 0.75, Demand: r},
		{Quota: 0.75, Burst: 0.75, Demand: r}}}
	near(t, "J", must[float64](t)(Coincidence(n, Offsets)), 1.0/16, 1e-9)
	near(t, "risk", must[float64](t)(Risk(n)), 1.0/16, 1e-9)
	// Throttled for ever, each admits its quota, which just fits; a burst elsewhere does not.
	heavy := must[*Recording](t)(NewRecording([]float64{2, 0.1}))
	n.Containers[0].Demand = heavy
	near(t, "J beside a saturated container", must[float64](t)(Coincidence(n, Offsets)), 0.25, 1e-9)
	roomy := Node{Capacity: 2.2, Containers: n.Containers}
	near(t, "J with room for a quota and a burst", must[float64](t)(Coincidence(roomy, Offsets)), 0, 1e-12)
	if _, err := Coincidence(n, Blocks); !errors.Is(err, ErrInput) {
		t.Errorf("J of blocks: %v", err)
	}
}

// Two lattices make up for what one of them is off by: 1.2e-4 of J.
func TestCoincidenceIsExtrapolated(t *testing.T) {
	n := same(t, 20, 1, exp(t, 0.7/20))
	finer := must[float64](t)(n.coincidence(8*n.grid(finePoints), Offsets))
	near(t, "J", must[float64](t)(Coincidence(n, Offsets)), finer, 1e-5*finer)
}

// Also between the points of the lattice more burst is more risk.
func TestCoincidenceGrowsWithBurst(t *testing.T) {
	last := 0.0
	for b := 0.5; b < 0.53; b += 0.003 {
		j := must[float64](t)(Coincidence(same(t, 20, b, exp(t, 0.7/20)), Offsets))
		if j < last*1.0005 {
			t.Errorf("burst %.3f: J %.6g after %.6g", b, j, last)
		}
		last = j
	}
}
