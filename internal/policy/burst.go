package policy

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// Rules is what the kernel supports, as probed.
type Rules struct {
	Burst           bool // cpu.cfs_burst_us or cpu.max.burst exists (5.14+)
	BurstAboveQuota bool // burst may exceed the quota (Alibaba Cloud Linux); mainline refuses with EINVAL
	Nested          bool // a child's quota may not exceed its parent's (v1)
	Refill          bool // a rewrite of an unchanged burst refills the runtime
}

// burstFor sizes the burst buffer of a group with a limit for a given quota.
//
// request is Koordinator's formula: a percentage of the limit, over the real period. target is the value to write. On
// mainline it never exceeds the limit, so that a raised quota can be given back without lowering the burst first. While
// the quota is raised, quota and burst together stay within the cap, because both may be used in one period.
func burstFor(limit cpu.Bandwidth, s strategy.Strategy, quota time.Duration, r Rules) (request, target time.Duration) {
	if !limit.Limited() || !s.Policy.Burst() {
		return 0, 0
	}
	request = cpu.Percent(limit.Quota, s.CPUBurstPercent)
	if !r.Burst {
		return request, 0
	}
	target = request
	if !r.BurstAboveQuota {
		target = min(target, limit.Quota)
	}
	if quota > limit.Quota {
		target = min(target, max(0, capFor(limit, s)-quota))
	}
	return request, target.Truncate(time.Microsecond)
}

// capFor is the cap: the most CPU time that a group may use in one period.
func capFor(limit cpu.Bandwidth, s strategy.Strategy) time.Duration {
	return max(limit.Quota, cpu.Percent(limit.Quota, s.CFSQuotaBurstPercent))
}

// Requested is what a strategy lets a container use in one period beyond its limit, in limits: so much of saved time,
// or so much by a higher quota, which need not be saved.
func Requested(s strategy.Strategy, r Rules) (burst, raise float64) {
	if s.Policy.Burst() && r.Burst {
		burst = float64(s.CPUBurstPercent) / 100
		if !r.BurstAboveQuota {
			burst = min(burst, 1)
		}
	}
	if s.Policy.Quota() {
		raise = float64(s.CFSQuotaBurstPercent-100) / 100
	}
	return burst, raise
}

// cut reduces what a strategy allows beyond the limit by a part.
func cut(s strategy.Strategy, part float64, r Rules) strategy.Strategy {
	if part <= 0 {
		return s
	}
	share := 1 - part
	s.CPUBurstPercent = min(s.CPUBurstPercent, int64(100*share*max(Requested(s, r))))
	s.CFSQuotaBurstPercent = 100 + int64(share*float64(s.CFSQuotaBurstPercent-100))
	s.StartupBurstPercent = 100 + int64(share*float64(s.StartupBurstPercent-100))
	return s
}
