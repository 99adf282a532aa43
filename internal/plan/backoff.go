package plan

import "time"

// Backoff spaces attempts with doubling gaps. The zero one is ready.
type Backoff struct {
	gap   time.Duration
	until time.Time
}

// Hit books an attempt in vain: the next one waits for twice as long as the one before, from the first gap to the most.
// When twice the most has passed without one, it begins anew.
func (b *Backoff) Hit(now time.Time, first, most time.Duration) {
	if now.Sub(b.until) > 2*most {
		b.gap = 0
	}
	b.gap = min(most, max(first, 2*b.gap))
	b.until = now.Add(b.gap)
}

// Until is when the next attempt may be made.
func (b *Backoff) Until() time.Time { return b.until }

// Ready says whether it is time for the next attempt.
func (b *Backoff) Ready(now time.Time) bool { return !now.Before(b.until) }
