package main

import (
	"testing"
	"time"
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
