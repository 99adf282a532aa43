package host

import (
	"testing"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/internal/schedext/loader"
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

// TestQuietTotalsCostNoMemory: they are read for each group in each status, once a second while a page is open.
func TestQuietTotalsCostNoMemory(t *testing.T) {
	var peak time.Duration
	if n := testing.AllocsPerRun(10, func() {
		peak += loader.Throttles(probe.Totals{Peak: time.Millisecond}).Peak
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
