// Package sample says what happened between two readings of a group's counters, and what a group has wanted of late.
package sample

import (
	"time"

	"plimsoll/internal/cpu"
)

// Reading is what was read of one group at one instant.
type Reading struct {
	At       time.Time
	Counters cpu.Counters
}

// Usage is what a group did between two readings.
type Usage struct {
	From, To      time.Time
	Used          time.Duration // CPU time
	Periods       int64
	Throttled     int64
	ThrottledTime time.Duration // summed over CPUs
	Bursts        int64
	BurstTime     time.Duration
	Rushed        time.Duration // what one period would have used at the rate at which its quota was used up
}

// Between compares two readings. A counter that ran backwards counts as unmoved: the group was replaced, or a
// reading was torn, and either is cured by the next reading.
func Between(a, b Reading) Usage {
	return Usage{
		From: a.At, To: b.At,
		Used:          grown(a.Counters.Usage, b.Counters.Usage),
		Periods:       grown(a.Counters.Periods, b.Counters.Periods),
		Throttled:     grown(a.Counters.Throttled, b.Counters.Throttled),
		ThrottledTime: grown(a.Counters.ThrottledTime, b.Counters.ThrottledTime),
		Bursts:        grown(a.Counters.Bursts, b.Counters.Bursts),
		BurstTime:     grown(a.Counters.BurstTime, b.Counters.BurstTime),
	}
}

func grown[T ~int64](a, b T) T { return max(0, b-a) }

// Elapsed is the wall time between the readings.
func (u Usage) Elapsed() time.Duration { return u.To.Sub(u.From) }

// CPUs is the mean number of CPUs used.
func (u Usage) CPUs() float64 {
	if u.Elapsed() <= 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Elapsed())
}

// Demand is what the group would have used in one period had it not been throttled: what it used, and the time for
// which its CPUs stood still with work to do. It is an upper bound: the work may have ended sooner. A window
// shorter than a period counts as it is, a longer one by its mean.
func (u Usage) Demand(period time.Duration) time.Duration {
	wanted := u.Used + u.ThrottledTime
	if u.Elapsed() > period {
		wanted = time.Duration(float64(wanted) * float64(period) / float64(u.Elapsed()))
	}
	return max(wanted, u.Rushed)
}

// AboveLimit is the CPU time used above what the limit grants over the same wall time.
func (u Usage) AboveLimit(limit cpu.Bandwidth) time.Duration {
	if !limit.Limited() {
		return 0
	}
	return max(0, u.Used-time.Duration(limit.CPUs()*float64(u.Elapsed())))
}

// ThrottledWall is the wall time lost to throttling, as far as the counters tell: CPUs that stand still together
// count once, so it is at most one period for each throttled one.
func (u Usage) ThrottledWall(period time.Duration) time.Duration {
	return min(u.ThrottledTime, time.Duration(max(u.Throttled, 1))*period)
}
