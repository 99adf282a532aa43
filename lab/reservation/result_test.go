package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/internal/report"
)

const ms = time.Millisecond

func slotOf(sit situation, took time.Duration, utilization float64, latency time.Duration, most float64) slot {
	l := load.NewLatencies()
	l.Record(latency)
	return slot{situation: sit, took: took, utilization: utilization, load: &load.Outcome{Latency: l}, most: most}
}

func TestSummarize(t *testing.T) {
	alone := situation{Neighbour: neighbour{Kind: nobody}}
	beside := situation{Neighbour: neighbour{Kind: onMemory, Threads: 4}}
	capped := situation{Neighbour: neighbour{Kind: onCPU, Threads: 4, Capped: true}}
	reserved := capped
	reserved.Reserved = true
	var slots []slot
	for _, slow := range []time.Duration{1, 1, 9} { // the last round is disturbed
		slots = append(slots, slotOf(beside, 4*time.Second*slow, 0.5, 3*ms*slow, 0), slotOf(reserved, time.Second, 1, ms, 9000),
			slotOf(capped, 2*time.Second, 0.5, 2*ms, 4000), slotOf(alone, time.Second*slow, 1, ms*slow, 9000))
	}
	r := summarize(slots)
	want := []figures{
		{situation: alone, Took: 1, Slowdown: 1, Utilization: 1, Scheduling: 1, Hardware: 1, P50: 1, P99: 1, Most: 9000, Requests: 3},
		{situation: capped, Took: 2, Slowdown: 2, Utilization: 0.5, Scheduling: 2, Hardware: 1, P50: 2, P99: 2, ChangeP99: 1, Most: 4000, Requests: 3},
		{situation: reserved, Took: 1, Slowdown: 1, Utilization: 1, Scheduling: 1, Hardware: 1, P50: 1, P99: 1, Most: 9000, Requests: 3},
		{situation: beside, Took: 4, Slowdown: 4, Utilization: 0.5, Scheduling: 2, Hardware: 2, P50: 3, P99: 3, ChangeP99: 2, Requests: 3},
	}
	// The histogram keeps three digits.
	if diff := cmp.Diff(want, r.Rows, cmpopts.EquateApprox(0.002, 0.002), cmpopts.EquateEmpty(), cmp.AllowUnexported(figures{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	r.row(reserved).Utilization, r.row(alone).Utilization = 0.1, 0.1
	if worst := r.worst(); worst == nil || worst.Utilization != 0.5 || worst.Reserved {
		t.Errorf("worst: %+v", worst)
	}
	r.Rows[2].Batch = split{Wanted: 10, Shortfall: 0.2}
	aims := r.aims()
	if len(aims) != 2 || aims[0].Met() || aims[0].Value != 0.02 || !aims[1].Met() {
		t.Errorf("aims: %+v", aims)
	}
	var page bytes.Buffer
	if err := r.writeText(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"burstable memory x4", "capped cpu x4, reserve", "x2.00", "9000/s", "50 %"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in:\n%s", want, page.String())
		}
	}
}

func TestSituations(t *testing.T) {
	names := func(list []situation) (names []string) {
		for _, s := range list {
			names = append(names, s.name())
		}
		return names
	}
	want := []string{"alone", "capped cpu x4", "capped memory x4", "capped sleepers x64", "burstable cpu x4", "burstable memory x4", "burstable sleepers x64"}
	if diff := cmp.Diff(want, names(situations(2, false, false))); diff != "" {
		t.Errorf("situations (-want +got):\n%s", diff)
	}
	want = append(want, "burstable cpu x1", "burstable sleepers x1", "burstable cpu x2", "burstable sleepers x2", "burstable sleepers x4",
		"burstable cpu x8", "burstable sleepers x8", "burstable cpu x16", "burstable sleepers x16")
	if diff := cmp.Diff(want, names(situations(2, true, false))); diff != "" {
		t.Errorf("with the sweep (-want +got):\n%s", diff)
	}
}

func TestSplit(t *testing.T) {
	one, short := 1.0, 300*ms
	d := report.Diagnosis{Containers: []report.Diagnosed{{Cgroup: "/other"}, {Cgroup: "/lab/target", Reserved: &one, Wanted: time.Second, Received: 600 * ms, Short: &short,
		Waits:      []report.Wait{{Cause: report.CauseNeighbour, Time: 300 * ms}, {Cause: report.CauseKernel, Time: 100 * ms}, {Cause: report.CauseIdle}},
		Neighbours: []report.Neighbour{{Forced: 100 * ms, Phantom: 50 * ms}, {Forced: 100 * ms, Waking: 10 * ms}}}}}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(text, "/lab/target")
	if err != nil {
		t.Fatal(err)
	}
	want := split{Wanted: 2, Received: 1.2, Shortfall: 0.6, Forced: 0.4, Phantom: 0.1, Waking: 0.02,
		Waits: map[string]float64{string(report.CauseNeighbour): 0.6, string(report.CauseKernel): 0.2, string(report.CauseIdle): 0}}
	if diff := cmp.Diff(want, s.plus(s), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("split (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{string(report.CauseNeighbour), string(report.CauseKernel)}, s.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "{", "{}"} {
		if s, err := read([]byte(bad), "/lab/target"); err == nil {
			t.Errorf("%q is taken: %+v", bad, s)
		}
	}
}

func TestApart(t *testing.T) {
	set := func(text string) cpu.Set {
		s, err := cpu.ParseSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		own, others string
		reserve, ok bool
	}{
		{"0", "1-2", true, true}, {"0", "0-2", true, false}, {"", "1-2", true, false}, {"0-1", "2", true, false}, {"0", "", true, false},
		{"0-2", "0-2", false, true}, {"", "", false, true}, {"0", "1-2", false, false},
	} {
		if err := apart(set(c.own), set(c.others), c.reserve); (err == nil) != c.ok {
			t.Errorf("%q and %q, reserve %v: %v", c.own, c.others, c.reserve, err)
		}
	}
}

func TestHighest(t *testing.T) {
	for _, c := range []struct{ true, want float64 }{{100, 0}, {500, 500}, {100000, 31000}, {9000, 9000}} {
		var tried []float64
		got, err := highest(500, 32000, 12, func(rate float64) (bool, error) {
			tried = append(tried, rate)
			return rate <= c.true, nil
		})
		if err != nil || got > c.true || got < 0.97*c.want {
			t.Errorf("of %v: found %v after %v, %v", c.true, got, tried, err)
		}
	}
}

// TestThreeCPUs holds the formulas against the published figure and against a period that is played through.
func TestThreeCPUs(t *testing.T) {
	share := shareOf(1, 2, 3)
	if diff := cmp.Diff(0.6, share, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("burstable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(2.0/3, cappedShare(share, 2, 3), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("capped (-want +got):\n%s", diff)
	}
	if got := cappedShare(share, 3, 3); got != share {
		t.Errorf("a quota that is never used up: %v, want %v", got, share)
	}
	for _, quota := range []float64{0.5, 1, 1.7, 2, 2.3} {
		const step = 1e-6
		left, got := quota, 0.0
		for at := 0.0; at < 1; at += step {
			if left > 0 {
				left -= step * (2 + 1 - share)
				got += step * share
			} else {
				got += step
			}
		}
		if diff := cmp.Diff(got, cappedShare(share, quota, 3), cmpopts.EquateApprox(0, 1e-4)); diff != "" {
			t.Errorf("quota %v (-played +formula):\n%s", quota, diff)
		}
	}
	r := threeResult{Cases: threeCases()}
	for i := range r.Cases {
		r.Cases[i].Got = r.Cases[i].Expected + 0.04
	}
	r.Cases[1].Got += 0.02
	for i, f := range r.figures() {
		if f.Met() != (i != 1) {
			t.Errorf("%+v", f)
		}
	}
}

func TestParse(t *testing.T) {
	if s, _, err := parse([]string{"-seconds", "2", "-only", "memory", "-reserve"}); err != nil || s.slot != 2*time.Second || len(s.situations) != 5 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range [][]string{{"-seconds", "0.5"}, {"-rounds", "0"}, {"-rate", "10"}, {"-rate", "2000", "-highest", "1000"}, {"-rate", "200", "-highest", "400"}} {
		if _, _, err := parse(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
