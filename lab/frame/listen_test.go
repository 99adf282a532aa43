package frame

import (
	"testing"
	"time"

	"plimsoll/internal/probe"
)

// TestAtCapOfARaise: with a quota that is raised to the cap, no refill is allowed after any use.
func TestAtCapOfARaise(t *testing.T) {
	if f := (probe.Facts{Quota: 15 * time.Millisecond, Used: time.Millisecond}); !AtCap(f, Cap(5*time.Millisecond)) {
		t.Error("three more quotas are allowed")
	}
}
