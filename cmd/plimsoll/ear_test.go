package main

import (
	"errors"
	"strings"
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

// TestOpenProbe: what the kernel refuses is done without, and said, as long as throttles are told of.
func TestOpenProbe(t *testing.T) {
	asked := probe.Options{Realtime: true, Use: true, Ahead: true}
	for name, c := range map[string]struct {
		takes      func(probe.Options) bool
		opened     bool
		use, ahead bool
		why        string
	}{
		"all":                   {func(probe.Options) bool { return true }, true, true, true, ""},
		"nothing is foreseen":   {func(o probe.Options) bool { return !o.Ahead }, true, true, false, "not foreseen: refused"},
		"no use is counted":     {func(o probe.Options) bool { return !o.Use }, true, false, true, "not counted: refused"},
		"throttles and no more": {func(o probe.Options) bool { return !o.Use && !o.Ahead }, true, false, false, "not foreseen, and the use of periods is not counted: refused"},
		"nothing":               {func(probe.Options) bool { return false }, false, false, false, "refused"},
	} {
		p, got, err := openProbe(func(o probe.Options) (*probe.Probe, error) {
			if !c.takes(o) {
				return nil, errors.New("refused")
			}
			return &probe.Probe{}, nil
		}, asked)
		if (p != nil) != c.opened || got.Use != c.use || got.Ahead != c.ahead || got.Realtime != c.opened || (err != nil) != (c.why != "") {
			t.Errorf("%s: %v, %+v, %v", name, p != nil, got, err)
		}
		if err != nil && !strings.Contains(lacking(asked, got, err), c.why) {
			t.Errorf("%s: %q, want %q", name, lacking(asked, got, err), c.why)
		}
	}
}
