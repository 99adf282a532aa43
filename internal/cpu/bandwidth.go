// Package cpu holds the values that everything else speaks in: bandwidth limits, counters and CPU sets.
//
// Every amount of CPU time is a time.Duration. The kernel's units (microseconds in cpu.max and cpu.cfs_*_us,
// nanoseconds in v1's throttled_time) exist in package cgroup only.
package cpu

import (
	"math"
	"math/bits"
	"time"
)

// Unlimited is the quota of a group that CFS bandwidth control does not limit ("max" on v2, -1 on v1).
const Unlimited = time.Duration(math.MaxInt64)

// DefaultPeriod is the kernel's default CFS period (kernel/sched/fair.c, default_cfs_period).
const DefaultPeriod = 100 * time.Millisecond

// Bandwidth is the CPU limit of one control group: Quota of CPU time in each Period of wall time, and up to Burst
// of saved quota on top.
type Bandwidth struct {
	Quota  time.Duration
	Period time.Duration
	Burst  time.Duration
}

// Limited says whether the group has a finite quota.
func (b Bandwidth) Limited() bool { return b.Quota != Unlimited }

// CPUs is the limit as a number of CPUs; +Inf when unlimited.
func (b Bandwidth) CPUs() float64 {
	if !b.Limited() || b.Period <= 0 {
		return math.Inf(1)
	}
	return float64(b.Quota) / float64(b.Period)
}

// Over is the quota of the same number of CPUs over another period, rounded down to the kernel's microsecond.
func (b Bandwidth) Over(period time.Duration) time.Duration {
	switch {
	case !b.Limited() || b.Period <= 0:
		return Unlimited
	case b.Period == period:
		return b.Quota
	}
	hi, lo := bits.Mul64(uint64(b.Quota), uint64(period))
	if hi >= uint64(b.Period) {
		return Unlimited
	}
	quota, _ := bits.Div64(hi, lo, uint64(b.Period))
	return time.Duration(min(quota, math.MaxInt64)).Truncate(time.Microsecond)
}

// Percent is p percent of d, exact for every d that a quota may take.
func Percent(d time.Duration, p int64) time.Duration {
	if d == Unlimited {
		return Unlimited
	}
	whole, rest := int64(d)/100, int64(d)%100
	if p > 0 && whole > math.MaxInt64/p-p {
		return Unlimited
	}
	return time.Duration(whole*p + rest*p/100)
}

// Counters are what the kernel has counted for one group since its creation.
type Counters struct {
	Usage     time.Duration // CPU time used
	Periods   int64         // periods in which the group was runnable
	Throttled int64         // of these, periods at whose end it stood throttled
	// ThrottledTime is summed over CPUs: two that stand still for 10 ms count 20 ms. It is the time that the group's
	// own quota took: what an ancestor's took is not in it.
	ThrottledTime time.Duration
	Bursts        int64         // periods in which saved quota was used
	BurstTime     time.Duration // saved quota used
	HasUsage      bool          // false where the group has no usage counter (v1: not in the cpuacct hierarchy)
	HasBursts     bool          // false below 5.16: the counters came after the feature
}

// Plus adds what a scheduler counts beside the kernel: everything but the CPU time used.
func (c Counters) Plus(more Counters) Counters {
	c.Periods += more.Periods
	c.Throttled += more.Throttled
	c.ThrottledTime += more.ThrottledTime
	c.Bursts += more.Bursts
	c.BurstTime += more.BurstTime
	return c
}
