package main

import (
	"testing"
	"time"
)

// TestDuring: of a time, what the CPU that stood still longest did so.
func TestDuring(t *testing.T) {
	list := []stall{{0, 90 * ms, 110 * ms}, {1, 100 * ms, 103 * ms}, {0, 120 * ms, 125 * ms}, {1, 140 * ms, 190 * ms}}
	for _, c := range []struct{ from, to, want time.Duration }{
		{100 * ms, 150 * ms, 15 * ms}, {100 * ms, 160 * ms, 23 * ms}, {103 * ms, 120 * ms, 7 * ms},
		{200 * ms, 300 * ms, 0},
	} {
		if got := during(list, c.from, c.to); got != c.want {
			t.Errorf("%v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if got := longest(list); got != 50*ms {
		t.Errorf("the longest: %v", got)
	}
}
