package noderisk

import (
	"math/rand/v2"
	"slices"

	"plimsoll/internal/loadline"
)

// How sure the risk is.
//
// Problem: the risk is computed from what was demanded in ten minutes, which are a few of all minutes. A figure that
// would be another one ten minutes later must not look exact.
//
// Approach: a bootstrap by minutes. As many minutes as are known are drawn from them, with replacement, the same for
// all containers, so that a minute in which all were busy stays one. The risk of each drawing is computed as that
// of the node. The interval holds the middle 95 % of them.
//
// Known limits: it says how much the last minutes differ from each other, and nothing of an hour that is unlike them.
// With fewer than leastMinutes minutes there is none. A risk of 0 has none: no drawing has a demand that nobody had.

const (
	leastMinutes = 5
	drawings     = 39 // of which the least and the largest are the quantiles of 2.5 % and 97.5 %
)

// Interval is the interval of 95 % of a risk with a share of the bursts; nil where it is not known.
func Interval(capacity float64, demands []Demand, r Risk, seed uint64) *[2]float64 {
	minutes := 0
	for _, d := range demands {
		minutes = max(minutes, len(d.Minutes))
	}
	if minutes < leastMinutes || r.Now <= 0 {
		return nil
	}
	low, high := r.Now, r.Now
	for i := range drawings {
		chance, drawn := rand.New(rand.NewPCG(seed, uint64(i))), make([]int, minutes)
		for k := range drawn {
			drawn[k] = chance.IntN(minutes)
		}
		n := nodeOf(capacity, redrawn(demands, drawn))(r.Share)
		if len(n.Containers) == 0 {
			low = 0
			continue
		}
		risk, err := loadline.Risk(n)
		if err != nil {
			return nil
		}
		low, high = min(low, risk), max(high, risk)
	}
	return &[2]float64{low, high}
}

// redrawn are the demands in some minutes, which count back from the latest one. A container that was there in none of
// them has its demand in all of its minutes.
func redrawn(demands []Demand, drawn []int) []Demand {
	list := slices.Clone(demands)
	for i := range list {
		d := &list[i]
		uses, known := make([]int64, len(d.Uses)), false
		for _, back := range drawn {
			if back >= len(d.Minutes) {
				continue
			}
			known = true
			for class, n := range d.Minutes[len(d.Minutes)-1-back] {
				uses[class] += n
			}
		}
		if known {
			d.Uses = uses
		}
	}
	return list
}
