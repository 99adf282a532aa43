package main

import (
	"errors"
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

// TestLacking: each part that the kernel refused is named with what is lost.
func TestLacking(t *testing.T) {
	missing := []probe.Missing{
		{Part: probe.PartForecast, Lost: "throttles are not foreseen", Err: errors.New("refused")},
		{Part: probe.PartPeriods, Lost: "the use of periods is not counted", Err: errors.New("no such field")},
	}
	const want = "throttles are not foreseen: refused; the use of periods is not counted: no such field"
	if got := lacking(missing); got != want || lacking(nil) != "" {
		t.Errorf("%q, want %q; nothing: %q", got, want, lacking(nil))
	}
}
