package view

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// TestBurstOfEachPeriod: a period has the burst that both snapshots around it say. Between two that differ, and before
// the first one, it is not known.
func TestBurstOfEachPeriod(t *testing.T) {
	const unknown = recent.UnknownBurst
	with := func(burst time.Duration, since time.Duration) report.Container {
		return web(func(c *report.Container) { c.Burst.InForce, c.Since = burst, t0.Add(since) })
	}
	var b Bursts
	for _, turn := range []struct {
		at   time.Duration
		c    report.Container
		ends []time.Duration
		want []int32
	}{
		{0, with(0, 0), []time.Duration{-100 * ms, 0}, []int32{unknown, 0}},
		{time.Second, with(0, 0), []time.Duration{100 * ms, 900 * ms}, []int32{0, 0}},
		{2 * time.Second, with(50*ms, 0), []time.Duration{950 * ms, time.Second, 1500 * ms, 2 * time.Second},
			[]int32{0, 0, unknown, 50_000}},
		{3 * time.Second, with(50*ms, 0), []time.Duration{1900 * ms, 2100 * ms, 2900 * ms},
			[]int32{unknown, 50_000, 50_000}},
		{4 * time.Second, with(20*ms, 0), []time.Duration{2950 * ms, 3500 * ms}, []int32{50_000, unknown}},
		// another group of the same path
		{5 * time.Second, with(20*ms, 5*time.Second), []time.Duration{4500 * ms, 5 * time.Second},
			[]int32{unknown, 20_000}},
	} {
		list := make([]recent.Period, len(turn.ends))
		for i, end := range turn.ends {
			list[i].End = t0.Add(end).UnixMilli()
		}
		b.Note(status(turn.at, turn.c), map[string][]recent.Period{turn.c.Cgroup: list})
		got := make([]int32, len(list))
		for i, p := range list {
			got[i] = p.Burst
		}
		if diff := cmp.Diff(turn.want, got); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", turn.at, diff)
		}
	}
	b.Note(status(6*time.Second), nil)
	if len(b.groups) != 0 {
		t.Errorf("what is gone is kept: %+v", b.groups)
	}
}

// TestCausesAreDocumented: docs/REFERENCE.md has each cause.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []Cause{OwnLimit, PodLimit, AtCap, LoadLine, ExtraCores, Budget, Guard, Refused, Paused, Held,
		PolicyNone, RefillsOff} {
		if !strings.Contains(string(text), "`"+string(cause)+"`") {
			t.Errorf("docs/REFERENCE.md does not name the cause %s", cause)
		}
	}
}
