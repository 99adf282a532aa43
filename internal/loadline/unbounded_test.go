package loadline

// Unbounded is the exact answer of the strict rule for bursts without bound, P and E(WCET): everything is admitted at
// once, and the node is one Lindley queue with the sum of the demands.
func Unbounded(n Node) (miss, wcet float64) {
	mean, variance := 0.0, 0.0
	for _, c := range n.Containers {
		mean += c.Demand.Mean()
		variance += c.Demand.Variance()
	}
	reach := 16 + 16*variance/((n.Capacity-mean)*n.Capacity)
	miss = n.fromTwo(unboundedPoints, reach, func(s solved) float64 { return s.tails().above[0] })
	age := n.fromTwo(agePoints, reach, solved.age)
	return miss, 1 + age
}

// The age of a run takes many steps on its lattice, a broken period one.
const (
	unboundedPoints = 512
	agePoints       = 128
)

// fromTwo is a figure of the node's queue, with the error of the lattice taken off.
func (n Node) fromTwo(points int, reach float64, f func(solved) float64) float64 {
	for points > leastPoints && reach*float64(points) > latticePoints {
		points /= 2
	}
	points = n.grid(points)
	fine := f(n.together(points, reach))
	if n.aligned(points) {
		return fine
	}
	return max(0, fine+(fine-f(n.together(points/2, reach)))/3)
}

// together is the queue of all demands, on a lattice on which the capacity has some points.
func (n Node) together(points int, reach float64) solved {
	length := powerOfTwo(int(reach * float64(points)))
	add := newConvolver(length)
	var sum lattice
	first, count := n.alike()
	for k, i := range first {
		p := add.times(newLattice(n.Containers[i].Demand, n.Capacity/float64(points), length), count[k])
		if sum.mass != nil {
			p = add.add(sum, p)
		}
		sum = p
	}
	return solved{x: sum, v: stationary(sum, points), quota: points, exact: n.aligned(points)}
}

// age is the sum over r of P(the last r periods were all broken): the law of the backlog goes from one broken period to
// the next, and what is not broken falls out. In the end what is left shrinks by the same factor in every step, and the
// rest of the sum is geometric.
func (s solved) age() float64 {
	add := newConvolver(len(s.x.mass))
	half := 0.5
	if s.exact {
		half = 0
	}
	run := lattice{step: s.x.step, mass: make([]float64, add.n)}
	copy(run.mass, s.v)
	run.mass[0] = half * s.nothingLeft()
	age, last := 0.0, 0.0
	for range 10000 {
		left := 0.0
		for _, m := range run.mass {
			left += m
		}
		age += left
		if left < 1e-14 {
			return age
		}
		rest := left * left / (last - left) // left (shrink + shrink^2 + ...)
		if left < last && rest < 1e-3*age {
			return age + rest
		}
		last = left
		run = add.shift(run, s.x, s.quota)
		run.mass[0] *= half
	}
	return age
}

// shift is the law of the sum less some points, where that is not below 0.
func (c *convolver) shift(p, q lattice, by int) lattice {
	sum := lattice{step: p.step, mass: make([]float64, c.n)}
	c.multiply(p, q)
	size := float64(len(c.a))
	for k := range sum.mass {
		if k+by < len(c.a) {
			sum.mass[k] = max(0, c.a[k+by]/size)
		}
	}
	return sum
}
