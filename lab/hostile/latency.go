package main

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/lab/frame"
)

const (
	// leastGain is for how long a throttle must last at least to be worth a refill (policy.leastGain, 2 ms), and a
	// refill takes a moment.
	leastGain = 4 * time.Millisecond
	// punctual is how near to its period's end a throttle ends that nothing else has ended.
	punctual = 2 * time.Millisecond
)

// write is one to a limit file of a group.
type write struct {
	group uint64
	at    time.Duration // CLOCK_MONOTONIC
}

// throttle is one that an agent may end.
type throttle struct {
	latency time.Duration // from its begin to its end or a write, whichever came first, or to its period's end
	missed  *miss
}

// miss is a throttle that nobody has ended. Several at one time tell of a stop of the agent or the machine, several of
// one group of a group that is refused.
type miss struct {
	Group  string        `json:"group"`
	After  time.Duration `json:"after_ns"` // the begin of its window
	Length time.Duration `json:"length_ns"`
	Stall  time.Duration `json:"stall_ns"` // of it: a CPU ran no real-time thread
	inode  uint64
}

func (m miss) String() string {
	return fmt.Sprintf("%s after %.3f s for %s, %s of it a stall", m.Group, m.After.Seconds(),
		span(m.Length), span(m.Stall))
}

// throttlesOf are the throttles that began in a window and that an agent may end, with what became of them: a group may
// use so much in a period. Writes and events are in the order of time, and go on for a period after the window.
func throttlesOf(events []probe.Event, writes []write, most, from, to time.Duration) []throttle {
	type one struct {
		group uint64
		since time.Duration
	}
	ends, of := map[one]time.Duration{}, map[uint64][]time.Duration{}
	for _, e := range events {
		if e.Kind == probe.End {
			ends[one{e.Group, e.Since}] = e.At
		}
	}
	for _, w := range writes {
		of[w.group] = append(of[w.group], w.at)
	}
	var list []throttle
	for _, e := range events {
		expires := e.Facts.Expires
		if e.Kind != probe.Begin || e.At < from || e.At >= to || expires-e.At < leastGain ||
			frame.AtCap(e.Facts, most) {
			continue
		}
		place, _ := slices.BinarySearch(of[e.Group], e.At)
		end, ended := ends[one{e.Group, e.Since}]
		switch {
		case place < len(of[e.Group]) && of[e.Group][place] < expires:
			over := of[e.Group][place]
			if ended {
				over = min(over, end)
			}
			list = append(list, throttle{latency: over - e.At})
		case !ended || end >= expires-punctual:
			left := expires - e.At
			list = append(list, throttle{left, &miss{After: e.At - from, Length: left, inode: e.Group}})
		} // else it has ended by itself: CPUs give unused slices back
	}
	return list
}

// outcome is what a window came to.
type outcome struct {
	Throttles int           `json:"throttles"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	Missed    []miss        `json:"missed"`
	// throttles of all groups that the agent did not end, by its reasons (Kinds of decisions, docs/REFERENCE.md)
	Refused map[string]int64 `json:"refused"`
	Memory  int64            `json:"rss_peak_bytes"`
	Stolen  float64          `json:"stolen"` // part of the time of all CPUs
	Stalls  int              `json:"stalls"` // times of at least 2 ms in which a CPU ran no real-time thread
	Longest time.Duration    `json:"longest_stall_ns"`
}

func summarize(list []throttle) outcome {
	o := outcome{Throttles: len(list)}
	latencies := make([]time.Duration, 0, len(list))
	for _, t := range list {
		latencies = append(latencies, t.latency)
		if t.missed != nil {
			o.Missed = append(o.Missed, *t.missed)
		}
	}
	slices.Sort(latencies)
	o.P50, o.P99 = frame.Quantile(latencies, 0.5), frame.Quantile(latencies, 0.99)
	return o
}
