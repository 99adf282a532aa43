package view

import (
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/recent"
)

// bank follows the burst tokens of one group through its periods.
//
// Problem: the kernel shows the tokens nowhere.
//
// Approach: replay the periods by the kernel's arithmetic, twice: as if nothing had been saved at the begin, and as if
// the bank had been full. Once both agree, that is what was saved. A throttle, or two periods without use, brings them
// together. After a period whose burst is not known the replay begins again.
//
// Known limits: a use is up to the last tick of each CPU, and CPUs keep up to 1 ms each of what they took: the tokens
// are off by so much.
type bank struct {
	begun     bool
	low, high bandwidth.Pool
}

// add replays a period. A write of the quota in it refilled the pool, as each write does.
func (b *bank) add(p recent.Period, length time.Duration) {
	if p.Burst == recent.UnknownBurst {
		b.begun = false
		return
	}
	burst := time.Duration(p.Burst) * time.Microsecond
	now := cpu.Bandwidth{Quota: time.Duration(p.Quota) * time.Microsecond, Period: length, Burst: burst}
	if !b.begun {
		b.begun, b.low, b.high = true, bandwidth.New(), bandwidth.New()
		b.low.Set(now)
		b.high.Set(cpu.Bandwidth{Quota: now.Quota + burst, Period: length}) // as full as it can be
	}
	for _, pool := range []*bandwidth.Pool{&b.low, &b.high} {
		if pool.Bandwidth() != now {
			pool.Set(now)
		}
		for range p.Refills {
			pool.Set(now)
		}
		if pool.Take(time.Duration(p.Used) * time.Microsecond); p.Throttles > 0 && p.Refills == 0 {
			pool.Take(cpu.Unlimited) // a throttle is an empty pool
		}
		pool.Touch()
		pool.Expire(p.Throttles > 0)
	}
}

// saved are the tokens after the last period; false where they are not known.
func (b *bank) saved() (time.Duration, bool) {
	low, high := tokens(&b.low), tokens(&b.high)
	return low, b.begun && low == high
}

func tokens(p *bandwidth.Pool) time.Duration { return max(0, p.Runtime()-p.Bandwidth().Quota) }
