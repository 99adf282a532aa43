package main

import (
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
)

// TestFlightFlags: bounds that keep nothing are refused, and do not matter where nothing is recorded.
func TestFlightFlags(t *testing.T) {
	for _, f := range []flightFlags{{dir: "/x", megabyte: 0, age: time.Hour},
		{dir: "/x", megabyte: 1, age: time.Second}} {
		if f.check() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	if (&flightFlags{}).check() != nil {
		t.Error("turned off, the bounds do not matter")
	}
}

// TestPeriodsAreMissed: who wants records of periods is told why there are none.
func TestPeriodsAreMissed(t *testing.T) {
	for want, s := range map[string]host.Throttles{
		"--poll was given": {Why: "--poll was given"},
		"no such field": {Why: "no probe",
			Missing: []report.MissingPart{{Part: probe.PartPeriods, Why: "no such field"}}},
	} {
		if err := periodsOf(s, nil).Record(true); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
