package trace

import (
	"math"
	"slices"
)

// Figures describe a series, in shares of the machine.
type Figures struct {
	Mean, Variance, P95, P99, Max float64
	Throttled                     float64 // share of the periods in which it stood throttled for some time
}

// Figures are the mean, the variance and the largest of what was used.
func (s Series) Figures() Figures {
	n := float64(len(s.Used))
	if n == 0 {
		return Figures{}
	}
	var f Figures
	for _, v := range s.Used {
		f.Mean += v / n
	}
	for _, v := range s.Used {
		f.Variance += (v - f.Mean) * (v - f.Mean) / n
	}
	sorted := slices.Sorted(slices.Values(s.Used))
	f.P95, f.P99, f.Max = quantile(sorted, 0.95), quantile(sorted, 0.99), sorted[len(sorted)-1]
	for _, v := range s.Throttled {
		if v > 0 {
			f.Throttled += 1 / n
		}
	}
	return f
}

// quantile is the smallest value that a share p of all does not exceed.
func quantile(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Coarse is the mean over each n periods in turn: what monitoring sees of a recording. Periods left over at the end are
// left out.
func (s Series) Coarse(n int) []float64 {
	var list []float64
	for ; len(s.Used) >= n; s.Used = s.Used[n:] {
		var sum float64
		for _, v := range s.Used[:n] {
			sum += v
		}
		list = append(list, sum/float64(n))
	}
	return list
}
