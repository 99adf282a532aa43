package main

import (
	"testing"
	"time"

	"plimsoll/internal/probe"
)

// TestOurTimeIsNotEarlier: what happened after an instant of ours is not taken for earlier.
func TestOurTimeIsNotEarlier(t *testing.T) {
	for range 10_000 {
		at := ourTime()
		before := time.Now()
		if got := at(probe.Monotonic()); got.Before(before) {
			t.Fatalf("%v too early", before.Sub(got))
		}
	}
}
