package main

import (
	"errors"
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
