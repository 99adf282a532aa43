package host

import (
	"testing"
	"time"

	"plimsoll/internal/probe"
)

// TestOurTimeIsNotEarlier: an event after an instant of the agent's clock does not appear earlier.
func TestOurTimeIsNotEarlier(t *testing.T) {
	for range 10_000 {
		at := ourTime()
		before := time.Now()
		if got := at(probe.Monotonic()); got.Before(before) {
			t.Fatalf("%v too early", before.Sub(got))
		}
	}
}
