package loadline

import (
	"fmt"
	"math"
)

// classes is a law on the multiples of a width: what an agent has counted of a container's periods. It knows no order:
// periods are independent of each other, however they are replayed.
type classes struct {
	width          float64
	masses         []float64
	mean, variance float64
}

// Classes is the law of a demand of i widths in counts[i] periods.
func Classes(width float64, counts []int64) (Law, error) {
	if !positive(width) {
		return nil, refuse("a width above 0", "classes of %v", width)
	}
	total := 0.0
	for i, n := range counts {
		if n < 0 {
			return nil, refuse("how many periods had that demand", "class %d: %d periods", i, n)
		}
		total += float64(n)
	}
	l := &classes{width: width}
	for i, n := range counts {
		l.masses = append(l.masses, float64(n)/max(total, 1))
		l.mean += l.masses[i] * float64(i) * width
	}
	if l.mean == 0 {
		return nil, refuse("count while the container works", "no period with a demand")
	}
	for i, m := range l.masses {
		l.variance += m * (float64(i)*width - l.mean) * (float64(i)*width - l.mean)
	}
	return l, nil
}

func (l *classes) Mean() float64     { return l.mean }
func (l *classes) Variance() float64 { return l.variance }

// step is 0: classes stand for a density.
func (l *classes) step() float64 { return 0 }

func (l *classes) String() string {
	return fmt.Sprintf("counted demand of mean %.6g in classes of %.6g", l.mean, l.width)
}

func (l *classes) atoms() (values, masses []float64) {
	for i := range l.masses {
		values = append(values, float64(i)*l.width)
	}
	return values, l.masses
}

func (l *classes) excess(x float64) float64 {
	sum := 0.0
	for i, m := range l.masses {
		sum += m * max(0, float64(i)*l.width-x)
	}
	return sum
}

func (l *classes) quantile(s float64) float64 {
	left := 1.0
	for i, m := range l.masses {
		if left -= m; left < s {
			return float64(i) * l.width
		}
	}
	return float64(len(l.masses)-1) * l.width
}

// nearFull bounds the points of a lattice. A container that needs a longer one is throttled nearly always.
const nearFull = 1 << 14

// admitted is the law of A with a quota and a burst, both rounded up to whole classes, on the lattice of the classes:
// they are so few that it takes a fiftieth of the time that it takes on a lattice of the node's. The tail of V falls
// about like exp(-2 gap V / variance) (Kingman), and 16 times that length leaves 1e-7.
func (l *classes) admitted(quota, burst float64) lattice {
	up := func(x float64) int { return int(math.Ceil(x/l.width - 1e-9)) }
	k, saved, most := max(1, up(quota)), up(min(burst, nearFull*l.width)), len(l.masses)-1
	if k >= most { // it is never throttled
		p := lattice{step: l.width, mass: l.masses}
		if k == most && saved == 0 {
			p.atom = l.masses[most]
		}
		return p
	}
	full := float64(k) * l.width
	reach := float64(most+4*k) + 8*l.variance/((full-l.mean)*l.width)
	if l.mean >= full || reach > nearFull {
		return always(full, k, k+1)
	}
	return solve(l, full, k, powerOfTwo(int(reach))).admitted(saved, most+1)
}
