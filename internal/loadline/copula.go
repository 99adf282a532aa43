package loadline

import (
	"math"
	"math/bits"
)

// copula correlates demands without changing their laws: each is the quantile of a normal variable, and the normal
// variables of a period share a common part (one-factor Gaussian copula),
//
//	z = sqrt(rho) common + sqrt(1-rho) own
//
// in integers of 2^-normalBits, by tables.
type copula struct {
	normal       curve // the half normal law
	shared, own  int64
	survivalUpTo []uint32 // P(normal > -normalMost + i/normalStep), as 32 bits
}

const (
	normalBits = 24
	normalMost = 8
	normalStep = 512
)

// halfNormal is the absolute value of a normal variable.
type halfNormal struct{ Law }

func (halfNormal) quantile(s float64) float64 { return math.Sqrt2 * math.Erfcinv(s) }

func newCopula(rho float64) copula {
	unit := scale{1 << (capacityBits - normalBits)}
	c := copula{normal: newCurve(halfNormal{}, unit), shared: unit.fixed(math.Sqrt(rho)),
		own: unit.fixed(math.Sqrt(1 - rho))}
	for i := 0; i <= 2*normalMost*normalStep+1; i++ {
		z := float64(i)/normalStep - normalMost
		c.survivalUpTo = append(c.survivalUpTo,
			uint32(min(math.MaxUint32, math.Round(math.Erfc(z/math.Sqrt2)/2*(1<<32)))))
	}
	return c
}

// draw is a normal variable: the lowest bit is its sign.
func (c *copula) draw(r uint32) int64 {
	z := c.normal.at(r)
	sign := -int64(r & 1)
	return z ^ sign - sign
}

// survival is P(normal > z) as 32 bits.
func (c *copula) survival(z int64) uint32 {
	const perStep = 1 << normalBits / normalStep
	z = min(max(0, z+normalMost<<normalBits), 2*normalMost<<normalBits)
	low, high := int64(c.survivalUpTo[z/perStep]), int64(c.survivalUpTo[z/perStep+1])
	return uint32(low + (high-low)*(z%perStep)/perStep)
}

// correlated is a source whose containers share the common part of every period.
type correlated struct {
	sampler
	copula *copula
	seed   uint64
	place  int
}

func (s correlated) admitted() bool { return false }

func (s correlated) open(replica int) tap {
	return &correlatedTap{s, stream(s.seed, common, replica), stream(s.seed, drawn, replica, s.place)}
}

type correlatedTap struct {
	correlated
	common, own random
}

func (t *correlatedTap) fill(x []int64) {
	c := t.copula
	for i := range x {
		z := c.shared*c.draw(uint32(t.common.word())) + c.own*c.draw(uint32(t.own.word()))
		x[i] = t.at(c.survival(z >> normalBits))
	}
}

// random is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014): a counter
// and a mixer, so that any number of streams is one hash away and its words are computed side by side. Chance is
// integer arithmetic throughout: the same seed gives the same numbers on every platform.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream is the generator of one purpose: streams of the same seed with different numbers are independent.
func stream(seed uint64, numbers ...int) random {
	state := mix(seed + golden)
	for _, n := range numbers {
		state = mix(state ^ mix(uint64(n)+golden))
	}
	return random{state}
}

func (r *random) word() uint64 {
	r.state += golden
	return mix(r.state)
}

// below is a number from 0 to n-1 (Lemire's multiplication; the bias is n/2^64).
func (r *random) below(n int) int {
	high, _ := bits.Mul64(r.word(), uint64(n))
	return int(high)
}
