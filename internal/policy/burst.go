package policy

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// Rules is what the kernel permits, as probed.
type Rules struct {
	Burst           bool // there is a burst buffer (5.14+)
	BurstAboveQuota bool // burst may exceed the quota (Alibaba Cloud Linux); mainline refuses with EINVAL
	Nested          bool // a child's quota may not exceed its parent's (v1)
	Refill          bool // a rewrite of an unchanged burst refills the runtime
}

// burstFor sizes the burst buffer of a group with a limit, while its quota is to be quota.
//
// requested is the peer's formula, percent of the limit, over the real period. target is what the kernel takes:
// never above the limit on mainline, so that giving a raised quota back needs no burst lowered first. While the
// quota is raised, quota and burst together stay at the cap: they may both be used in one period.
func burstFor(limit cpu.Bandwidth, s strategy.Strategy, quota time.Duration, r Rules) (requested, target time.Duration) {
	if !limit.Limited() || !s.Policy.Burst() {
		return 0, 0
	}
	requested = cpu.Percent(limit.Quota, s.CPUBurstPercent)
	if !r.Burst {
		return requested, 0
	}
	target = requested
	if !r.BurstAboveQuota {
		target = min(target, limit.Quota)
	}
	if quota > limit.Quota {
		target = min(target, max(0, capFor(limit, s)-quota))
	}
	return requested, target.Truncate(time.Microsecond)
}

// capFor is the most CPU time that a group may use in one period.
func capFor(limit cpu.Bandwidth, s strategy.Strategy) time.Duration {
	return max(limit.Quota, cpu.Percent(limit.Quota, s.CFSQuotaBurstPercent))
}
