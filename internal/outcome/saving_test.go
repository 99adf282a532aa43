package outcome

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// TestReportedLate: what a refill ahead of a throttle saved is known at its period's end. It counts from when the
// throttle would have begun, and not twice.
func TestReportedLate(t *testing.T) {
	t0 := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	var s saving
	sum := s.begin(at(20*ms), at(100*ms))
	sum += s.by(at(70 * ms))
	sum += s.begin(at(50*ms), at(100*ms)) // of a later refill, which is judged at 70 ms
	sum += s.by(at(200 * ms))
	if sum != 80*ms {
		t.Errorf("saved %v, want 80ms", sum)
	}
}
