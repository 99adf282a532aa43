package loadline

import "math"

// What a container admits in a period is A = min(x + max(0, V-c), q + max(0, c-V)), with its quota q, its burst c and V
// from before the period: its backlog and demand, bounded by its quota and tokens.

// admittedBy is the law of A for periods that are independent of each other, on a lattice on which the quota has k
// points. n bounds the points of A.
func admittedBy(c Container, k, n int) (lattice, error) {
	if !c.limited() || math.IsInf(c.Burst, 1) && c.Demand.Mean() < c.Quota {
		step := c.Quota / float64(k)
		return newLattice(c.Demand, step, n), nil
	}
	if c.Demand.Mean() >= c.Quota {
		return always(c.Quota, k, n), nil
	}
	_, long, err := queueGrid(c.Demand, c.Quota)
	if err != nil {
		return lattice{}, err
	}
	s := solve(c.Demand, c.Quota, k, powerOfTwo(max(long*k/quotaPoints, 4*k)))
	at := min(c.Burst/s.x.step, float64(len(s.v)-1))
	low := int(at + 1e-9)
	part := max(0, at-float64(low))
	if part < 1e-9 {
		return s.admitted(low, n), nil
	}
	// A burst between two points is a mixture of both.
	p, q := s.admitted(low, n), s.admitted(low+1, n)
	for i := range p.mass {
		p.mass[i] += part * (q.mass[i] - p.mass[i])
	}
	p.over += part * (q.over - p.over)
	p.atom += part * (q.atom - p.atom)
	return p, nil
}

// always is a container that is throttled for ever: it admits its quota, no more and no less.
func always(quota float64, k, n int) lattice {
	p := lattice{step: quota / float64(k), mass: make([]float64, n), atom: 1}
	p.add(k, 1)
	return p
}

// admitted is the law of A with a burst of some points.
func (s solved) admitted(burst, n int) lattice {
	v, x, q := s.v, s.x.mass, s.quota
	burst = min(burst, len(v)-1)
	p := lattice{step: s.x.step, mass: make([]float64, n)}
	upTo, beyond := cumulate(v), survival(s.x)
	total := 0.0
	put := func(a int, mass float64) {
		p.add(a, mass)
		total += mass
	}
	for a := 0; a <= q+burst; a++ {
		// With tokens left the demand is admitted, where V lets it.
		free := min(burst, q+burst-a-1)
		if a < len(x) && free >= 0 {
			put(a, x[a]*upTo[free])
		}
		// Else all that quota and tokens hold.
		if a >= q {
			put(a, v[q+burst-a]*beyond[min(a, len(beyond)-1)])
		}
	}
	// With a backlog, no more than the quota.
	for b := 1; b < q && burst+b < len(v); b++ {
		for a := b; a < q; a++ {
			put(a, v[burst+b]*x[a-b])
		}
	}
	p.atom = max(0, 1-total)
	p.add(q, p.atom)
	if burst == 0 {
		p.atom += v[0] * beyond[q] // no backlog, no tokens
	}
	return p
}

func cumulate(list []float64) []float64 {
	sums := make([]float64, len(list))
	sum := 0.0
	for i, m := range list {
		sum += m
		sums[i] = sum
	}
	return sums
}

// survival is P(X >= point).
func survival(p lattice) []float64 {
	list := make([]float64, len(p.mass))
	sum := p.over
	for i := len(list) - 1; i >= 0; i-- {
		sum += p.mass[i]
		list[i] = sum
	}
	return list
}

// admittedIn is A in every period of a recording, in a circle.
func admittedIn(r *Recording, quota, burst float64) []float64 {
	list := make([]float64, len(r.samples))
	if r.mean >= quota {
		for i := range list {
			list[i] = quota
		}
		return list
	}
	held := 0.0
	for i, v := range path(r.samples, quota) {
		next := max(0, v-burst)
		list[i] = r.samples[i] - next
		if i > 0 {
			list[i] += held
		}
		held = next
	}
	list[0] += held
	return list
}
