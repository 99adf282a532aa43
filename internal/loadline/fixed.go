package loadline

import "math"

// The simulation counts in integers: the capacity is 2^36. Sums are exact in any order then, a period's minima and
// maxima cost one instruction, and the same seed gives the same counts on every platform, whatever it does to the last
// bit of a float64. Figures enter rounded to the grid, laws as tables rounded to the grid.
const (
	capacityBits = 36
	whole        = int64(1) << capacityBits
	boundless    = int64(1) << 60 // a burst or quota without bound
)

// A tie (exactly the capacity is asked for) is met. Quotas and demands that are multiples of each other lose that when
// they are rounded to the grid, so a millionth of the capacity, or of the quota, does not count.
const tie = 1e-6

// scale turns figures into integers.
type scale struct{ capacity float64 }

func (s scale) fixed(x float64) int64 {
	units := math.Round(x / s.capacity * float64(whole))
	return int64(min(units, float64(boundless)))
}

func (s scale) float(x float64) float64 { return x * s.capacity / float64(whole) }

func (s scale) list(x []float64) []int64 {
	units := make([]int64, len(x))
	for i := range x {
		units[i] = s.fixed(x[i])
	}
	return units
}

// group is a container in integers.
type group struct {
	quota, burst, slack int64
}

func (s scale) group(c Container) group {
	g := group{quota: s.fixed(c.Quota), burst: s.fixed(c.Burst)}
	g.slack = int64(tie * float64(min(g.quota, whole)))
	return g
}
