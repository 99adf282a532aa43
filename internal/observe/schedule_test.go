package observe

import (
	"testing"
	"time"
)

// TestInStep: whenever a group was read, it is due at an instant that all have in common, and not later than
// wanted.
func TestInStep(t *testing.T) {
	r := newReader(nil, func() time.Time { return time.Unix(1000, 0) })
	for _, c := range []struct{ now, d, want time.Duration }{
		{0, LookEvery, LookEvery},
		{ms, LookEvery, LookEvery},
		{50 * ms, LookEvery, LookEvery},
		{LookEvery - leastGap + ms, LookEvery, 2 * LookEvery},
		{LookEvery, LookEvery, 2 * LookEvery},
		{LookEvery, IdleEvery, 2 * CappedEvery},
		{ms, CappedEvery, CappedEvery},
		{CappedEvery - ms, CappedEvery, 2 * CappedEvery},
	} {
		got := r.InStep(r.started.Add(c.now), c.d)
		if got := got.Sub(r.started); got != c.want {
			t.Errorf("read at %v: due at %v, want %v", c.now, got, c.want)
		}
	}
}
