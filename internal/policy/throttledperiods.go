package policy

import "time"

const (
	// A demand lasts when lastingHits of lastingPeriods periods were throttled.
	lastingHits, lastingPeriods = 3, 5
	// verdictSlack is how long after its minute the next verdict on a limit may come: with the next throttle, which
	// polling may find late.
	verdictSlack = 5 * time.Second
)

// throttledPeriods are those in which a group was throttled, or was about to be.
type throttledPeriods struct {
	recent [lastingHits]time.Time // their ends, oldest first
	rare   time.Time              // the end of the last one that did not come soon after others
	begun  time.Time              // the end of the last one in which it was throttled
	minute time.Time              // when the count of those began
	count  int64
	until  time.Time // the limit is too low until then
}

// want books a period whose quota does not do, once, whether that stopped the group or was foreseen.
func (s *throttledPeriods) want(end time.Time, period time.Duration) {
	last := s.recent[lastingHits-1]
	if end.Sub(last) < period/2 {
		return
	}
	copy(s.recent[:], s.recent[1:])
	s.recent[lastingHits-1] = end
	if !s.lasting(end, period) {
		s.rare = end
	}
}

// hit books a period in which the group was throttled, once.
func (s *throttledPeriods) hit(end time.Time, period time.Duration) {
	s.want(end, period)
	if end.Sub(s.begun) < period/2 {
		return
	}
	s.begun = end
	if end.Sub(s.minute) >= time.Minute {
		if period > 0 && end.Sub(s.minute) < 2*time.Minute && s.count > int64(time.Minute/period)/2 {
			s.until = end.Add(time.Minute + verdictSlack)
		}
		s.minute, s.count = end, 0
	}
	s.count++
}

// found books the throttled periods that a reading found, where no event reports each.
func (s *throttledPeriods) found(n int64, at time.Time, period time.Duration) {
	for i := min(n, lastingHits) - 1; i > 0; i-- {
		s.want(at.Add(-time.Duration(i)*period), period)
	}
	s.hit(at, period)
	s.count += max(0, n-1)
}

// lasting says whether throttles come period after period.
func (s *throttledPeriods) lasting(now time.Time, period time.Duration) bool {
	return now.Sub(s.recent[0]) <= lastingPeriods*period
}

// enduring says whether they have done so for as long as a raise looks back.
func (s *throttledPeriods) enduring(now time.Time, period time.Duration) bool {
	return s.lasting(now, period) && now.Sub(s.rare) >= demandSpan
}

// limitTooLow says whether the limit is too low.
func (s *throttledPeriods) limitTooLow(now time.Time) bool { return now.Before(s.until) }
