package loadline

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"
)

// lattice is a law on the multiples of a step, up to its length; over is the mass beyond.
type lattice struct {
	step float64
	mass []float64
	over float64
	// atom is the mass that sits, of all that is in the law, at exactly the quota: the container used it up, and had
	// no tokens.
	atom float64
}

// lumpy is a law that consists of atoms.
type lumpy interface {
	atoms() (values, masses []float64)
}

func (l poisson) atoms() (values, masses []float64) {
	masses = l.masses()
	for k := range masses {
		values = append(values, float64(k)*l.job)
	}
	return values, masses
}

func (r *Recording) atoms() (values, masses []float64) {
	masses = make([]float64, len(r.samples))
	for i := range masses {
		masses[i] = 1 / float64(len(masses))
	}
	return r.samples, masses
}

// newLattice puts a law on the points 0 to n-1: each point takes the law's mass under a hat of its neighbours' width.
// The mean is kept, and E max(0, X-x) at every point. What the points do not reach goes to over.
func newLattice(l Law, step float64, n int) lattice {
	if a, ok := l.(lumpy); ok {
		values, masses := a.atoms()
		return spread(values, masses, step, n)
	}
	p := lattice{step: step, mass: make([]float64, n)}
	before, here := l.Mean()+step, l.Mean()
	sum := 0.0
	for k := range p.mass {
		after := l.excess(float64(k+1) * step)
		p.mass[k] = max(0, (before-2*here+after)/step)
		sum += p.mass[k]
		before, here = here, after
	}
	p.over = max(0, 1-sum)
	return p
}

// spread puts atoms on the lattice, each between its two neighbours.
func spread(values, masses []float64, step float64, n int) lattice {
	p := lattice{step: step, mass: make([]float64, n)}
	for i, v := range values {
		at := v / step
		k := int(min(at, float64(n)))
		part := at - float64(k)
		p.add(k, masses[i]*(1-part))
		if part > 0 {
			p.add(k+1, masses[i]*part)
		}
	}
	return p
}

func (p *lattice) add(k int, mass float64) {
	if k >= len(p.mass) {
		p.over += mass
		return
	}
	p.mass[k] += mass
}

// regrid puts the law on another lattice.
func (p lattice) regrid(step float64, n int) lattice {
	if math.Abs(step-p.step) <= 1e-12*step {
		q := lattice{step: step, mass: make([]float64, n), over: p.over, atom: p.atom}
		for k, m := range p.mass {
			q.add(k, m)
		}
		return q
	}
	values := make([]float64, len(p.mass))
	for k := range values {
		values[k] = float64(k) * p.step
	}
	q := spread(values, p.mass, step, n)
	q.over += p.over
	q.atom = p.atom
	return q
}

// convolver adds independent variables on lattices of n points.
type convolver struct {
	n    int
	fft  *fourier.FFT
	a    []float64
	x, y []complex128
}

func newConvolver(n int) *convolver {
	size := powerOfTwo(2 * n)
	return &convolver{n: n, fft: fourier.NewFFT(size), a: make([]float64, size),
		x: make([]complex128, size/2+1), y: make([]complex128, size/2+1)}
}

// powerOfTwo is the least power of two that is not below n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// add is the law of the sum. A sum beyond the lattice stays beyond it: nothing wraps around.
func (c *convolver) add(p, q lattice) lattice {
	c.multiply(p, q)
	sum := c.collect(p.step)
	sum.atom = p.atom * q.atom
	sum.over += p.over + q.over - p.over*q.over
	return sum
}

// multiply leaves the masses of the sum in a, times its length. It may wrap around beyond that.
func (c *convolver) multiply(list ...lattice) {
	for i, p := range list {
		c.load(c.a, p.mass)
		c.y = c.fft.Coefficients(c.y, c.a)
		if i == 0 {
			copy(c.x, c.y)
			continue
		}
		for k := range c.x {
			c.x[k] *= c.y[k]
		}
	}
	c.a = c.fft.Sequence(c.a, c.x)
}

// collect takes the masses out of a.
func (c *convolver) collect(step float64) lattice {
	sum := lattice{step: step, mass: make([]float64, c.n)}
	size := float64(len(c.a))
	for k, v := range c.a {
		sum.add(k, max(0, v/size))
	}
	return sum
}

// all is the law of the sum of many: as many as cannot wrap around even together are multiplied at a time.
func (c *convolver) all(list []lattice) lattice {
	var sum lattice
	for len(list) > 0 {
		part, reach, k := list[0], list[0].reach(), 1
		for ; k < len(list) && list[0].over == 0 && list[k].over == 0 && reach+list[k].reach() < len(c.a); k++ {
			reach += list[k].reach()
		}
		if k > 1 {
			c.multiply(list[:k]...)
			part = c.collect(list[0].step)
			part.atom = 1
			for _, p := range list[:k] {
				part.atom *= p.atom
			}
		}
		if sum.mass != nil {
			part = c.add(sum, part)
		}
		sum, list = part, list[k:]
	}
	return sum
}

// reach is the highest point that has a mass.
func (p lattice) reach() int {
	for k := len(p.mass) - 1; k > 0; k-- {
		if p.mass[k] > 0 {
			return k
		}
	}
	return 0
}

func (c *convolver) load(to, mass []float64) {
	clear(to[copy(to, mass):])
}

// times is the law of the sum of m independent copies.
func (c *convolver) times(p lattice, m int) lattice {
	var sum lattice
	for first := true; ; p = c.add(p, p) {
		if m&1 == 1 {
			if first {
				sum, first = p, false
			} else {
				sum = c.add(sum, p)
			}
		}
		if m >>= 1; m == 0 {
			return sum
		}
	}
}
