package experiment

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// What chance alone makes of a p99.
//
// Problem: two runs that are the same in everything but chance differ, and a difference counts only beyond that.
// Requests are not drawn one by one, though: one that is held up holds up those behind it, and a machine that is slow
// for a second, as a virtual one is when its host takes the CPU, is slow for all that come in it. Resampling single
// requests takes thirty slow ones for thirty cases where there were three, and gives too narrow an interval; and it
// takes for chance that other requests might have come, though all modes of a round get the same arrivals.
//
// Approach: rounds are resampled (the percentile bootstrap of Efron, with rounds as clusters), the same ones for both
// sides, so that what all modes of a round have in common falls out of the ratio.
//
// Known limits: with a handful of rounds there are few that can be drawn, and the interval is too narrow; one round
// gives a point.

const (
	resamples  = 2000
	confidence = 0.95
)

// Interval is where a figure would lie by chance alone.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// request is how long one took.
type request struct {
	latency float64 // in milliseconds
	round   int     // in which it was sent, from 0
}

// ordered are the requests of some rounds, fastest first.
func ordered(rounds [][]float64) []request {
	var list []request
	for i, round := range rounds {
		for _, latency := range round {
			list = append(list, request{latency, i})
		}
	}
	slices.SortFunc(list, func(a, b request) int { return cmp.Compare(a.latency, b.latency) })
	return list
}

// chance is the interval of the ratio of two quantiles, a's to b's, whose rounds belong together one by one.
func chance(a, b [][]float64, q float64, seed uint64) Interval {
	above, below := ordered(a), ordered(b)
	if len(above) == 0 || len(below) == 0 || len(a) != len(b) {
		return Interval{}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	ratios := make([]float64, resamples)
	for i := range ratios {
		drawn := make([]int, len(a))
		for range a {
			drawn[rng.IntN(len(a))]++
		}
		ratios[i] = quantileOf(above, drawn, q) / quantileOf(below, drawn, q)
	}
	slices.Sort(ratios)
	tail := int((1 - confidence) / 2 * resamples)
	return Interval{ratios[tail], ratios[resamples-1-tail]}
}

// quantileOf is that of the requests of the rounds drawn, each as often as it was.
func quantileOf(sorted []request, drawn []int, q float64) float64 {
	total := 0
	for _, r := range sorted {
		total += drawn[r.round]
	}
	rank := int(math.Ceil(q * float64(total)))
	for _, r := range sorted {
		if rank -= drawn[r.round]; rank <= 0 {
			return r.latency
		}
	}
	return sorted[len(sorted)-1].latency
}
