package loadline

import (
	"slices"
	"sort"
)

// History is what a quota does to a recording, in its order, for every burst at once.
type History struct {
	quota, mean float64
	v           []float64 // sorted
	above       []float64 // above[i] is the sum of v[i:]
}

// NewHistory takes a recording through its quota once, in a circle.
func NewHistory(r *Recording, quota float64) (*History, error) {
	if !(quota > 0) {
		return nil, refuse("a quota above 0", "history at quota %v", quota)
	}
	if r.mean >= quota {
		return nil, unstable("raise the limit above the mean demand", "mean demand %.6g of a quota of %.6g", r.mean,
			quota)
	}
	h := &History{quota: quota, mean: r.mean, v: path(r.samples, quota)}
	slices.Sort(h.v)
	h.above = make([]float64, len(h.v)+1)
	for i := len(h.v) - 1; i >= 0; i-- {
		h.above[i] = h.above[i+1] + h.v[i]
	}
	return h, nil
}

// path is V at the end of every period, in a circle. What is left after one turn from nothing is what every later turn
// begins with: the turn as a whole leads down.
func path(demand []float64, quota float64) []float64 {
	list := make([]float64, len(demand))
	v := 0.0
	for _, x := range demand {
		v = max(0, v+x-quota)
	}
	for i, x := range demand {
		v = max(0, v+x-quota)
		list[i] = v
	}
	return list
}

// throttled is History.Throttled of one burst: that needs no order.
func (r *Recording) throttled(quota, burst float64) float64 {
	n := 0
	for _, v := range path(r.samples, quota) {
		if v > burst+tie*quota {
			n++
		}
	}
	return float64(n) / float64(len(r.samples))
}

// Throttled is the fraction of periods in which a burst does not suffice.
func (h *History) Throttled(burst float64) float64 {
	edge := burst + tie*h.quota
	i := sort.Search(len(h.v), func(i int) bool { return h.v[i] > edge })
	return float64(len(h.v)-i) / float64(len(h.v))
}

// Backlog is the mean work that is held back at the end of a period.
func (h *History) Backlog(burst float64) float64 {
	i := sort.SearchFloat64s(h.v, burst)
	if i == len(h.v) {
		return 0
	}
	return max(0, h.above[i]-float64(len(h.v)-i)*burst) / float64(len(h.v))
}

// Delay is the mean delay by the limit, in periods: mean backlog / mean demand (Little).
func (h *History) Delay(burst float64) float64 { return h.Backlog(burst) / h.mean }

// Enough is the least burst with which no more than a fraction of the periods is throttled.
func (h *History) Enough(throttled float64) float64 {
	k := len(h.v) - 1 - int(throttled*float64(len(h.v))+1e-9)
	if k < 0 {
		return 0
	}
	return h.v[k]
}
