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
// The bucket holds as much as running at the cap for that many seconds costs above the limit, and is full at the
// start. CPU time used above the limit empties it, time left unused below the limit fills it, both for the real
// time that passed. It may run into debt by what a container used between two looks; the debt is paid back first.
type budget struct {
	capacity time.Duration
	tokens   time.Duration
	spent    bool // ran out, and has not yet recovered enough to start again
	bounded  bool
}

// recover is the part of the capacity that must be back before a spent budget is used again.
const recoverFraction = 10

// advance books a window.
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

// charge takes a grant that a write could not avoid.
func (b *budget) charge(grant time.Duration) {
	if b.bounded {
		b.tokens = max(-b.capacity, b.tokens-grant)
	}
}

// resize follows the configuration: a new capacity starts full.
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

// left is what may still be used above the limit.
func (b *budget) left() time.Duration {
	if !b.bounded {
		return cpu.Unlimited
	}
	if b.spent {
		return 0
	}
	return max(0, b.tokens)
}
