package main

import (
	"slices"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/lab/frame"
)

// lengths are those of the throttles that ended in a window, of all and of those that an agent may end, in order of length.
func lengths(events []probe.Event, quota, from, to time.Duration) (all, endable []time.Duration) {
	type one struct {
		group uint64
		since time.Duration
	}
	capped := map[one]bool{}
	for _, e := range events {
		at := one{e.Group, e.Since}
		switch {
		case e.Kind == probe.Begin:
			capped[at] = frame.AtCap(e.Facts, frame.Cap(quota))
		case e.Kind == probe.End && e.At >= from && e.At < to:
			all = append(all, e.At-e.Since)
			if !capped[at] {
				endable = append(endable, e.At-e.Since)
			}
		}
	}
	slices.Sort(all)
	slices.Sort(endable)
	return all, endable
}

// lost is the wall time that throttles cost.
type lost struct {
	Throttles int           `json:"throttles"`
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
	Mean      time.Duration `json:"mean_ns"`
	Total     time.Duration `json:"total_ns"` // of all groups
}

// sum expects lengths in order.
func sum(sorted []time.Duration) lost {
	l := lost{Throttles: len(sorted), Median: frame.Quantile(sorted, 0.5), P99: frame.Quantile(sorted, 0.99)}
	for _, d := range sorted {
		l.Total += d
	}
	if len(sorted) > 0 {
		l.Mean = l.Total / time.Duration(len(sorted))
	}
	return l
}

// measures are the names of what a figure can be made of.
func measures() []string { return []string{"median", "p99", "mean"} }

func (l lost) of(measure string) time.Duration {
	switch measure {
	case "median":
		return l.Median
	case "p99":
		return l.P99
	}
	return l.Mean
}

// tally is what the kernel itself adds up of the groups, whether events are lost or not.
type tally struct {
	Ends    int64         `json:"throttles"`
	Wall    time.Duration `json:"total_ns"`
	Dropped int64         `json:"dropped"`
}

func count(p *probe.Probe, groups []uint64) (t tally) {
	for _, id := range groups {
		g, _ := p.Totals(id) // all are watched
		t.Ends += g.Ends
		t.Wall += g.Wall
		t.Dropped += g.Dropped
	}
	return t
}

func (t tally) since(first tally) tally {
	return tally{t.Ends - first.Ends, t.Wall - first.Wall, t.Dropped - first.Dropped}
}
