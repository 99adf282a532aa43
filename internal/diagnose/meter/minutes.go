package meter

import "time"

// minutes has what groups did in the last minute of the clock. The first one is shorter.
type minutes[T any] struct {
	present, last time.Time
	of            map[string]T // in the last; not changed once it is here
}

// over says whether the present minute is over, and begins the next.
func (m *minutes[T]) over(now time.Time) bool {
	minute := now.Truncate(time.Minute)
	if minute.Equal(m.present) {
		return false
	}
	first := m.present.IsZero()
	m.last, m.present = m.present, minute
	return !first
}

// ended is the minute that began then, if it has just ended; else nil.
func (m *minutes[T]) ended(start time.Time) map[string]T {
	if !start.Equal(m.last) {
		return nil
	}
	return m.of
}
