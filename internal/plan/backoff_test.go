package plan

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const first, most = time.Second, time.Minute
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	var b Backoff
	if !b.Ready(now) {
		t.Error("the zero one is not ready")
	}
	waits := func(want time.Duration) {
		t.Helper()
		b.Hit(now, first, most)
		if b.Ready(now.Add(want-1)) || !b.Ready(now.Add(want)) {
			t.Errorf("it waits until %v, want %v from %v", b.until, want, now)
		}
		now = now.Add(want)
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		waits(want * time.Second)
	}
	now = now.Add(2 * most) // calm, but not for long enough
	waits(most)
	now = now.Add(2*most + 1)
	waits(first)
}
