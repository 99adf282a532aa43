package policy

import (
	"slices"
	"time"
)

// PutOff are throttles that were predicted and postponed (Output.Later).
type PutOff []Throttle

// Due takes out those that are due, and appends them to events. A newer event of the same group replaces a postponed
// one.
func (p *PutOff) Due(now time.Time, events []Throttle) []Throttle {
	*p = slices.DeleteFunc(*p, func(old Throttle) bool {
		_, newer := Latest(events, old.Inode)
		if !newer && !now.Before(old.Due()) {
			events = append(events, old)
			return true
		}
		return newer
	})
	return events
}

// Next is when the first of them is due; zero: there is none.
func (p PutOff) Next() (first time.Time) {
	for _, t := range p {
		first = Sooner(first, t.Due())
	}
	return first
}

// Sooner is the earlier of two times; a zero first is none.
func Sooner(first, at time.Time) time.Time {
	if first.IsZero() || at.Before(first) {
		return at
	}
	return first
}
