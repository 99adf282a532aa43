package outcome

import "time"

// saving is the rest of a period in which a refilled group would have been throttled. Time counts as it passes, and so
// only once for several refills of a period. The saving ends if the group is throttled again.
type saving struct{ from, until time.Time }

// begin counts the time from a refill to the end of the period, and returns what was saved before.
func (s *saving) begin(refill, until time.Time) time.Duration {
	saved := s.by(refill)
	// The refill is reported late, and the time since then is counted already.
	if s.from.After(refill) && s.from.Before(until) {
		refill = s.from
	}
	*s = saving{refill, until}
	return saved
}

// end stops counting at a throttle, and returns what was saved before.
func (s *saving) end(throttle time.Time) time.Duration {
	if throttle.Before(s.from) {
		return 0 // the throttle that the refill has ended
	}
	saved := s.by(throttle)
	s.until = s.from
	return saved
}

// by returns what was saved by now and not returned before.
func (s *saving) by(now time.Time) time.Duration {
	if s.until.Before(now) {
		now = s.until
	}
	saved := max(0, now.Sub(s.from))
	s.from = s.from.Add(saved)
	return saved
}
