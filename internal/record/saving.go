package record

import "time"

// saving is the rest of a period in which a group that was refilled would have stood still. It counts as it passes, so once
// however many refills a period takes, and ends where the group stands still all the same.
type saving struct{ from, until time.Time }

// begin has the time up to the period's end count from a refill on, and returns what was saved before.
func (s *saving) begin(refill, until time.Time) time.Duration {
	saved := s.by(refill)
	if s.from.After(refill) && s.from.Before(until) { // it is reported late, and what passed meanwhile was counted
		refill = s.from
	}
	*s = saving{refill, until}
	return saved
}

// end has no more count from a throttle on, and returns what was saved before.
func (s *saving) end(throttle time.Time) time.Duration {
	if throttle.Before(s.from) {
		return 0 // it is the one that was ended
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
