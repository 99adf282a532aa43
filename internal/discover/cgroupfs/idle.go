package cgroupfs

import "time"

// idle is for how long there is nothing to do, if no event comes. A node on which nothing happens is not to wake up
// each second for it.
func (s *Scanner) idle(last time.Time) time.Duration {
	wait := s.walkIn()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 {
		wait = min(wait, last.Add(lookupEvery).Sub(s.opt.Now()))
	}
	return wait
}

// walkIn is the time until the next walk of the whole tree.
func (s *Scanner) walkIn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	every := s.opt.Every
	if s.blind() {
		every = min(every, blindEvery)
	}
	return s.walked.Add(every).Sub(s.opt.Now())
}
