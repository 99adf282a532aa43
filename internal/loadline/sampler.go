package loadline

import (
	"math"
	"math/bits"
)

// sampler draws demands in integers. Each word of chance gives two.
type sampler interface {
	fill(x []int64, r *random)
	at(survival uint32) int64 // the demand that is exceeded with probability survival / 2^32
}

// newSampler prepares the drawing of a law, one period independent of the other.
func newSampler(l Law, s scale) sampler {
	switch l := l.(type) {
	case *Recording:
		return newUrn(l, s)
	case poisson:
		return newLadder(l, s)
	default:
		return newCurve(l, s)
	}
}

// curve draws from a continuous law by its quantile function of a 32-bit survival, in steps: 2048 in each octave, for
// the quantile is steep where the survival is small. A step of the exponential law is less than a thousandth of its
// mean wide, also in the tail, and what is met often stays in the first cache.
type curve struct{ steps *[32 * octave]int64 }

const (
	octaveBits = 11
	octave     = 1 << octaveBits
)

func newCurve(l Law, s scale) curve {
	var steps [32 * octave]int64
	for n := range 32 {
		for k := range octave {
			survival := math.Ldexp(1+(float64(k)+0.5)/octave, n-32)
			steps[rung(math.Ldexp(1+float64(k)/octave, n))] = s.fixed(l.quantile(survival))
		}
	}
	return curve{&steps}
}

// rung is the number of a survival's step. A float64 has it already: the exponent is the octave, the highest bits of
// the fraction are the step in it.
func rung(survival float64) uint64 {
	return math.Float64bits(survival) >> (52 - octaveBits) % (32 * octave)
}

func (c curve) at(survival uint32) int64 { return c.steps[rung(float64(survival|1))] }

func (c curve) fill(x []int64, r *random) {
	state, steps := r.state, c.steps
	for i := 0; i+1 < len(x); i += 2 {
		state += golden
		w := mix(state) | 1<<32 | 1
		x[i] = steps[rung(float64(int64(w&math.MaxUint32)))]
		x[i+1] = steps[rung(float64(int64(w>>32)))]
	}
	r.state = state
	if len(x)%2 == 1 {
		x[len(x)-1] = c.at(uint32(r.word()))
	}
}

// ladder draws from a law on a lattice: a table leads near the rung, a few steps to it.
type ladder struct {
	upTo  []uint64 // upTo[k] is the 32-bit survival from which on fewer than k jobs come
	start [256]int
	value []int64
}

func newLadder(l poisson, s scale) *ladder {
	d := &ladder{}
	left := 1.0
	for k, p := range l.masses() {
		left -= p
		d.upTo = append(d.upTo, uint64(math.Round(max(0, left)*(1<<32))))
		d.value = append(d.value, s.fixed(float64(k)*l.job))
	}
	d.upTo = append(d.upTo, 0)
	d.value = append(d.value, s.fixed(float64(len(d.value))*l.job))
	for i := range d.start {
		for k := range d.upTo {
			if d.upTo[k] <= uint64(i+1)<<24-1 {
				d.start[i] = k
				break
			}
		}
	}
	return d
}

func (d *ladder) at(r uint32) int64 {
	k := d.start[r>>24]
	for d.upTo[k] > uint64(r) {
		k++
	}
	return d.value[k]
}

func (d *ladder) fill(x []int64, r *random) {
	for i := range x {
		x[i] = d.at(uint32(r.word()))
	}
}

// urn draws samples of a recording in any order. They are sorted.
type urn struct{ samples []int64 }

func newUrn(r *Recording, s scale) urn { return urn{s.list(r.sorted)} }

func (u urn) at(r uint32) int64 {
	high, _ := bits.Mul64(uint64(^r)<<32, uint64(len(u.samples)))
	return u.samples[high]
}

func (u urn) fill(x []int64, r *random) {
	for i := range x {
		x[i] = u.samples[r.below(len(u.samples))]
	}
}
