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
// readings may put the bucket into debt, which is paid back first.
type budget struct {
	capacity time.Duration
	tokens   time.Duration
	spent    bool // the bucket ran out and has not yet refilled enough (recoverFraction) to be used again
	bounded  bool
}

// recoverFraction: a spent budget is used again once a tenth of its capacity is back.
const recoverFraction = 10

// advance accounts for the usage of one window.
func (b *budget) advance(u sample.Usage, limit cpu.Bandwidth, s strategy.Strategy) {
	b.resize(limit, s)
	if !b.bounded {
		return
	}
	earned := time.Duration(limit.CPUs() * float64(u.Elapsed()))
	b.tokens = min(b.capacity, max(-b.capacity, b.tokens+earned-u.Used))
	switch {
	case b.tokens <= 0:
		b.spent = true
	case b.tokens >= b.capacity/recoverFraction:
		b.spent = false
	}
}

// charge subtracts what a write granted although the cap had no room for it.
func (b *budget) charge(grant time.Duration) {
	if b.bounded {
		b.tokens = max(-b.capacity, b.tokens-grant)
	}
}

// resize sets the capacity that the strategy configures. A budget of a new capacity starts full.
func (b *budget) resize(limit cpu.Bandwidth, s strategy.Strategy) {
	if s.CFSQuotaBurstPeriodSeconds == strategy.Unlimited || !limit.Limited() {
		*b = budget{}
		return
	}
	perSecond := limit.CPUs() * float64(s.CFSQuotaBurstPercent-100) / 100
	capacity := time.Duration(perSecond * float64(s.CFSQuotaBurstPeriodSeconds) * float64(time.Second))
	if !b.bounded || capacity != b.capacity {
		*b = budget{bounded: true, capacity: capacity, tokens: capacity, spent: capacity == 0}
	}
}

// left is the CPU time that may still be used above the limit.
func (b *budget) left() time.Duration {
	if !b.bounded {
		return cpu.Unlimited
	}
	if b.spent {
		return 0
	}
	return max(0, b.tokens)
}
