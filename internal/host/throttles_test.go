package host

import (
	"testing"

	"plimsoll/internal/probe"
	"plimsoll/internal/report"
)

// TestThrottlesWhyNoPeriods: who asks for periods is told why the kernel records none, the missing part before the
// whole.
func TestThrottlesWhyNoPeriods(t *testing.T) {
	for want, s := range map[string]Throttles{
		"--poll was given": {Why: "--poll was given"},
		"no such field":    {Why: "x", Missing: []report.MissingPart{{Part: probe.PartPeriods, Why: "no such field"}}},
	} {
		if got := s.WhyNoPeriods(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
