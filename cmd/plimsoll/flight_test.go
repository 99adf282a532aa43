package main

import (
	"testing"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/internal/report"
)

// TestFlightFlags: bounds that keep nothing are refused, and do not matter where nothing is recorded.
func TestFlightFlags(t *testing.T) {
	for _, f := range []flightFlags{{dir: "/x", megabyte: 0, age: time.Hour}, {dir: "/x", megabyte: 1, age: time.Second}} {
		if f.check() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	if (&flightFlags{}).check() != nil {
		t.Error("turned off, the bounds do not matter")
	}
}

// TestWhyNoPeriods: who asks for periods is told why the kernel records none, the missing part before the whole.
func TestWhyNoPeriods(t *testing.T) {
	for want, s := range map[string]throttleSource{
		"--poll was given": {why: "--poll was given"},
		"no such field":    {why: "x", missing: []report.MissingPart{{Part: probe.PartPeriods, Why: "no such field"}}},
	} {
		if err := s.periods(nil).Record(true); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
