package plan

import "time"

// Scale is the factor by which the kernel has scaled period, quota and burst of a group whose period was before; 1: it
// has not. The kernel doubles all three, below a period of a second, where the period's timer cannot keep up
// (kernel/sched/fair.c, sched_cfs_period_timer, since 4929a4e6faa0).
func Scale(before, now time.Duration) int64 {
	if before <= 0 || now <= before || now >= time.Second || now%before != 0 {
		return 1
	}
	n := int64(now / before)
	if n&(n-1) != 0 {
		return 1
	}
	return n
}

// Times is what the kernel makes of a quota or burst by scaling it. No limit stays none.
func (v Value) Times(n int64) Value {
	d, err := v.Time()
	if err != nil || v == "max" {
		return v
	}
	return Time(d * time.Duration(n))
}

// Divided undoes Times.
func (v Value) Divided(n int64) Value {
	d, err := v.Time()
	if err != nil || v == "max" {
		return v
	}
	return Time(d / time.Duration(n))
}
