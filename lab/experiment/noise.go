package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	resamples  = 2000
	confidence = 0.95
)

// Interval is where a figure would lie by chance alone.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// chance is the interval of the ratio of two quantiles, a's to b's, that resampling requests gives (the percentile
// bootstrap of Efron): of two runs that are the same in everything but chance, it says how far apart they may come
// out. The samples are sorted.
func chance(a, b []float64, q float64, seed uint64) Interval {
	if len(a) == 0 || len(b) == 0 {
		return Interval{}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = resampled(a, q, rng) / resampled(b, q, rng)
	}
	slices.Sort(ratios)
	tail := int((1 - confidence) / 2 * resamples)
	return Interval{ratios[tail], ratios[resamples-1-tail]}
}

// resampled is the quantile of as many values drawn from the sample with replacement.
func resampled(sorted []float64, q float64, rng *rand.Rand) float64 {
	drawn := make([]int, len(sorted))
	for range sorted {
		drawn[rng.IntN(len(sorted))]++
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	for i, n := range drawn {
		if rank -= n; rank <= 0 {
			return sorted[i]
		}
	}
	return sorted[len(sorted)-1]
}
