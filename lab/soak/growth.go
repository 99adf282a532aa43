package main

import (
	"math"
	"slices"

	"plimsoll/internal/experiment"
)

// Whether something grows.
//
// Problem: what an agent holds goes up and down with what its groups do, and up in its first minutes. A leak is
// small beside both. It grows with each group that comes and goes, and never falls.
//
// Approach: the slope of what is held over the number of groups that were started: the median of the slopes between
// any two points (Theil and Sen), so that a few wild points do not count. The noise is the interval of 99 % of that
// slope: of the N slopes in order, those of the ranks (N ± z σ)/2, where σ² = n(n-1)(2n+5)/18 is the variance of
// Kendall's S of n points (Sen, Journal of the American Statistical Association 63, 1968).
//
// The interval is true for independent points, and neighbouring samples are not: memory is collected at intervals.
// So a point is the median of a block of samples.
//
// Two questions are asked so. Within a life: the points are blocks of the life of the agent that is not killed,
// without its first third. Across lives: each agent that was killed is a point, by its last third, so that all
// are of the same age. What grows there is in a file or in the kernel, and outlives its agent.
//
// Known limits: ties are not subtracted from the variance, so that the interval is wider than need be. A leak that
// depends on time alone shows because groups are started all the time.

// point is a block of samples: groups started, and what was held.
type point struct{ x, y float64 }

// growth is what is held more for each group that was started.
type growth struct {
	Slope  float64 `json:"slope"`
	Low    float64 `json:"low"` // of the interval of 99 %
	High   float64 `json:"high"`
	Known  bool    `json:"known"` // there are points enough for an interval
	Points int     `json:"points"`
	Span   float64 `json:"span"` // groups that were started from the first point to the last
}

// confidence is the quantile of the normal distribution for a two-sided interval of 99 %.
const confidence = 2.576

// grow finds the growth over points. Fewer than seven have no interval.
func grow(list []point) growth {
	g := growth{Points: len(list)}
	if len(list) > 0 {
		g.Span = list[len(list)-1].x - list[0].x
	}
	var slopes []float64
	for i, a := range list {
		for _, b := range list[:i] {
			if a.x != b.x {
				slopes = append(slopes, (a.y-b.y)/(a.x-b.x))
			}
		}
	}
	slices.Sort(slopes)
	g.Slope = experiment.Median(slopes)
	n := float64(len(list))
	half := confidence * math.Sqrt(n*(n-1)*(2*n+5)/18)
	if low := int(math.Floor((float64(len(slopes))-half)/2)) - 1; low >= 0 {
		g.Low, g.High, g.Known = slopes[low], slopes[len(slopes)-1-low], true
	}
	return g
}

// blocks cuts samples into at most so many blocks of the same size, and takes the median of each.
func blocks(list []point, most int) []point {
	var medians []point
	size := max(1, len(list)/most)
	for ; len(list) >= size && len(medians) < most; list = list[size:] {
		part := list[:size]
		if len(medians) == most-1 {
			part = list
		}
		medians = append(medians, point{
			experiment.MedianOf(part, func(p point) float64 { return p.x }),
			experiment.MedianOf(part, func(p point) float64 { return p.y })})
	}
	return medians
}
