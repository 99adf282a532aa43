package loadline

import (
	"math"
)

// Queue is the exact law of one container: what a quota does to it for every burst at once. Its periods are independent
// of each other: a recording's memory is not in it (History has it).
type Queue struct {
	mean         float64
	fine, coarse tails
}

// NewQueue solves the queue of a demand at a quota.
func NewQueue(demand Law, quota float64) (*Queue, error) {
	if demand == nil || !positive(quota) {
		return nil, refuse("a law and a finite quota above 0", "queue of %v at quota %v", demand, quota)
	}
	if demand.Mean() >= quota {
		return nil, unstable("raise the limit above the mean demand", "mean demand %.6g of a quota of %.6g",
			demand.Mean(), quota)
	}
	k, n, err := queueGrid(demand, quota)
	if err != nil {
		return nil, err
	}
	q := &Queue{mean: demand.Mean()}
	q.fine = solve(demand, quota, k, n).tails()
	q.coarse = q.fine
	if demand.step() == 0 {
		q.coarse = solve(demand, quota, k/2, n/2).tails()
	}
	return q, nil
}

const (
	quotaPoints   = 128 // of the finest lattice
	leastPoints   = 16
	latticePoints = 1 << 19
)

// queueGrid chooses the points of a quota and of the lattice. The tail of V falls about like exp(-2 gap V / variance)
// (Kingman), and 32 times that length leaves 1e-14; the quotas beside it are for tails that fall more slowly.
func queueGrid(demand Law, quota float64) (k, n int, err error) {
	reach := 16 + 16*demand.Variance()/((quota-demand.Mean())*quota)
	k = quotaPoints
	for k > leastPoints && reach*float64(k) > latticePoints {
		k /= 2
	}
	if job := demand.step(); job > 0 {
		k = onPoints(job/quota, k)
	}
	if reach*float64(k) > latticePoints {
		return 0, 0, unstable("raise the limit", "mean demand %.8g of a quota of %.8g: too near for the exact law",
			demand.Mean(), quota)
	}
	return k, powerOfTwo(int(reach * float64(k))), nil
}

// onPoints is a number of points from k on of which a share is a whole number, or k if there is none.
func onPoints(share float64, k int) int {
	for points := k; points < 8*k; points++ {
		if at := share * float64(points); at > 0.5 && beside(at) < 1e-7 {
			return points
		}
	}
	return k
}

// solved is a container's queue on a lattice.
type solved struct {
	x     lattice
	v     []float64 // masses of V
	quota int       // in points
	exact bool      // the law is on the lattice, and has no density: a tie is a tie
}

func solve(demand Law, quota float64, k, n int) solved {
	step := quota / float64(k)
	s := solved{x: newLattice(demand, step, n), quota: k}
	if d := demand.step(); d > 0 {
		s.exact = math.Abs(d/step-math.Round(d/step)) < 1e-9
	}
	s.v = stationary(s.x, k)
	return s
}

// tails are P(V > point) and E max(0, V - point).
type tails struct {
	step          float64
	above, excess []float64
}

// tails sums up. Where the law has a density, a point's own mass lies half above it. The mass of V at 0 does not: there
// the demand only counts that left exactly nothing.
func (s solved) tails() tails {
	n := len(s.v)
	t := tails{step: s.x.step, above: make([]float64, n), excess: make([]float64, n)}
	half := 0.5
	if s.exact {
		half = 0
	}
	sum, excess := 0.0, 0.0
	for k := n - 1; k >= 0; k-- {
		here := s.v[k]
		if k == 0 {
			here = s.nothingLeft()
		}
		t.above[k], t.excess[k] = sum+half*here, excess*s.x.step
		sum += s.v[k]
		excess += sum
	}
	return t
}

// nothingLeft is P(V + x = quota).
func (s solved) nothingLeft() float64 {
	sum := 0.0
	for k := 0; k <= s.quota && k < len(s.v); k++ {
		sum += s.v[k] * s.x.mass[s.quota-k]
	}
	return sum
}

// at interpolates: straight in the logarithm, as tails fall.
func (t tails) at(list []float64, burst float64) float64 {
	at := burst / t.step
	if at >= float64(len(list)-1) {
		return 0
	}
	k := int(at + 1e-9)
	part := max(0, at-float64(k))
	low, high := list[k], list[k+1]
	if low <= 0 || high <= 0 || part == 0 {
		return low + part*(high-low)
	}
	return low * math.Pow(high/low, part)
}

// extrapolate takes the error of the lattice, which is of second order, off (Richardson).
func (q *Queue) extrapolate(f func(t tails) float64) float64 {
	fine := f(q.fine)
	if q.coarse.step == q.fine.step {
		return fine
	}
	return max(0, fine+(fine-f(q.coarse))/3)
}

// Throttled is the fraction of periods in which a burst does not suffice.
func (q *Queue) Throttled(burst float64) float64 {
	return min(1, q.extrapolate(func(t tails) float64 { return t.at(t.above, burst) }))
}

// Backlog is the mean work that is held back at the end of a period.
func (q *Queue) Backlog(burst float64) float64 {
	return q.extrapolate(func(t tails) float64 { return t.at(t.excess, burst) })
}

// Delay is the mean delay by the limit, in periods: mean backlog / mean demand (Little).
func (q *Queue) Delay(burst float64) float64 { return q.Backlog(burst) / q.mean }
