package top

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/view"
)

// Sampler makes periods of successive readings of one group's files, for whom no program in the kernel records them.
//
// The kernel counts periods that are over (nr_periods). Where one reading sees several end, the use between two
// readings is spread over them evenly. After a pause, as of a strip that was closed, it begins anew, with an empty
// column. Without a limit there are no periods; columns of 100 ms stand for them. Tokens and refills are not in the
// files.
type Sampler struct {
	read      time.Time // the last reading
	at        time.Time // the last period that is over
	last      cpu.Counters
	used      time.Duration // since the last period that is over
	throttled time.Duration
}

// pause is longer than two readings of an open strip are apart.
const pause = time.Second

// Add takes a reading, and gives the periods that have ended since the one before.
func (s *Sampler) Add(now time.Time, c cpu.Counters, b cpu.Bandwidth) view.Periods {
	p := view.Periods{Length: b.Period}
	if p.Length <= 0 {
		p.Length = cpu.DefaultPeriod
	}
	if now.Sub(s.read) > pause {
		if !s.read.IsZero() { // a column in which nothing is known
			p = view.Periods{Length: p.Length, End: []int64{now.UnixMilli()}, Used: []int32{-1}, Quota: []int32{-1},
				Tokens: []int32{-1}, Throttles: []int32{0}, Lost: []int32{0}, Refills: []int32{0}}
		}
		*s = Sampler{read: now, at: now, last: c}
		return p
	}
	s.read = now
	s.used += c.Usage - s.last.Usage
	s.throttled += c.ThrottledTime - s.last.ThrottledTime
	ended, throttled := c.Periods-s.last.Periods, c.Throttled-s.last.Throttled
	quota := int32(-1)
	if b.Limited() {
		quota = int32(b.Quota.Microseconds())
	} else {
		ended = int64(now.Sub(s.at) / p.Length)
	}
	if s.last = c; ended <= 0 {
		return p
	}
	used, lost := max(0, s.used)/time.Duration(ended), min(max(0, s.throttled)/time.Duration(ended), p.Length)
	for i := range ended {
		p.End = append(p.End, now.Add(-time.Duration(ended-1-i)*p.Length).UnixMilli())
		p.Used, p.Quota, p.Tokens = append(p.Used, int32(used.Microseconds())), append(p.Quota, quota), append(p.Tokens,
			-1)
		throttle := int32(0)
		if ended-i <= throttled {
			throttle = 1
		}
		p.Throttles, p.Lost, p.Refills = append(p.Throttles, throttle), append(p.Lost,
			throttle*int32(lost.Microseconds())), append(p.Refills, 0)
	}
	s.at, s.used, s.throttled = now, 0, 0
	return p
}
