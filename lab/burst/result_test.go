package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestSummarize pairs by round: what slows all of a round down is no difference.
func TestSummarize(t *testing.T) {
	var all []burst
	for round, slow := range []time.Duration{0, 30 * ms, 5 * ms} {
		all = append(all, burst{"unlimited", round, 2, 50*ms + slow, 0}, burst{"unlimited", round, 2, 54*ms + slow, 0},
			burst{"auto", round, 2, 55*ms + slow, 2 * ms}, burst{"auto", round, 2, 57*ms + slow, 4 * ms})
	}
	rows := summarize(all)
	if len(rows) != mostAtOnce*len(modes()) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.AtOnce != 2 {
			continue
		}
		near := func(name string, got, want float64) {
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s is %g, want %g", r.Mode, name, got, want)
			}
		}
		switch r.Mode {
		case "unlimited":
			near("mean", r.Mean, 52+35.0/3)
			near("later", r.Later, 0)
		case "auto":
			near("later", r.Later, 4)
			near("error", r.Within, 0)
			near("agent", r.Agent, 3)
		}
	}
}

func TestInterval(t *testing.T) {
	// sd sqrt(2), of the mean 1
	if center, reach := interval([]float64{1, 3}); center != 2 || math.Abs(reach-1.96) > 1e-9 {
		t.Errorf("%g +- %g", center, reach)
	}
	if _, reach := interval([]float64{5}); !math.IsInf(reach, 1) {
		t.Errorf("one value: +- %g", reach)
	}
}

func TestText(t *testing.T) {
	r := result{Kernel: "6.18", Work: 40, Limit: 0.5, Rounds: 30, Rows: []row{
		{1, "unlimited", 41, 0, 0, 0.01}, {1, "auto", 42.5, 1.5, 0.75, 0.3}}}
	var page bytes.Buffer
	r.WriteText(&page)
	for _, want := range []string{"1  unlimited       41.0 ms                     -",
		"auto       42.5 ms         1.5 ms +- 0.8", "0.30 ms"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
}
