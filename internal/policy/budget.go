package policy

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
)

// budget bounds how long a container may run above its limit: cfsQuotaBurstPeriodSeconds as a token bucket of CPU
// time.
//
// The bucket holds the CPU time above the limit that running at the cap for that many seconds takes. It is full at the
// start. CPU time used above the limit empties it, and CPU time left unused below the limit fills it. Use between two
// readings may put the bucket into debt, which is paid back first. What is missing stays missing when the capacity
// changes: it depends on a pod's annotation and limit, and whoever changes these would fill the bucket.
type budget struct {
	capacity time.Duration
	missing  time.Duration // of a full bucket; more than capacity: debt
	spent    bool          // the bucket ran out and has not yet refilled enough (recoverFraction) to be used again
	bounded  bool
}

// recoverFraction: a spent budget is used again once a tenth of its capacity is back.
const recoverFraction = 10

// mostSeconds of CPU time are 95 years: more would not fit into a time with its debt.
const mostSeconds = 3e9

// advance accounts for the usage of one window.
func (b *budget) advance(u sample.Usage, limit cpu.Bandwidth, s strategy.Strategy) {
	b.resize(limit, s)
	if !b.bounded {
		return
	}
	earned := time.Duration(limit.CPUs() * float64(u.Elapsed()))
	b.missing = min(b.most(), max(0, b.missing+u.Used-earned))
	switch left := b.capacity - b.missing; {
	case left <= 0:
		b.spent = true
	case left >= b.capacity/recoverFraction:
		b.spent = false
	}
}

// most is how much may be missing: a debt of a whole bucket, or that of a larger one before.
func (b *budget) most() time.Duration { return max(2*b.capacity, b.missing) }

// charge subtracts what a write granted although the cap had no room for it.
func (b *budget) charge(grant time.Duration) {
	if b.bounded {
		b.missing = min(b.most(), b.missing+grant)
	}
}

// resize sets the capacity that the strategy configures.
func (b *budget) resize(limit cpu.Bandwidth, s strategy.Strategy) {
	if s.CFSQuotaBurstPeriodSeconds == strategy.Unlimited || !limit.Limited() {
		*b = budget{}
		return
	}
	perSecond := limit.CPUs() * float64(s.CFSQuotaBurstPercent-100) / 100
	capacity := time.Duration(min(perSecond*float64(s.CFSQuotaBurstPeriodSeconds), mostSeconds) * float64(time.Second))
	b.bounded, b.capacity, b.spent = true, capacity, b.spent || capacity == 0
}

// left is the CPU time that may still be used above the limit.
func (b *budget) left() time.Duration {
	if !b.bounded {
		return cpu.Unlimited
	}
	if b.spent {
		return 0
	}
	return max(0, b.capacity-b.missing)
}
