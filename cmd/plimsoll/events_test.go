package main

import (
	"errors"
	"testing"

	"plimsoll/internal/probe"
)

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
