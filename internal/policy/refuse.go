package policy

import (
	"time"

	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// Batch counts the throttles of each tenant that are answered together.
type Batch map[string]int

// Refuse says whether the throttle of a group is refused unseen: its tenant's share of the writes is used up, by what
// the batch has let through so far. To read a pod takes the thread longer than a write: a tenant with a thousand groups
// would delay all others by what it is refused. What the event says is booked; a start is never refused so.
func (s *State) Refuse(now time.Time, id workload.ID, t Throttle, b Batch) bool {
	m := s.groups[id]
	if m == nil || now.Sub(m.started) < nodeSpan || t.At.Before(m.refilled) {
		return false
	}
	need, of := tenant.Ordinary, m.owner.Tenant()
	if m.throttledPeriods.limitTooLow(now) {
		need = tenant.TooLow
	}
	if s.writes.Affords(now, of, need, b[of]) {
		b[of]++
		return false
	}
	m.bookThrottle(t, false)
	if m.throttledPeriods.lasting(now, t.Bandwidth.Period) {
		m.quiet.Hit(now, firstQuiet, mostQuiet)
	}
	m.why = notRefilled + tooManyWrites
	return true
}
