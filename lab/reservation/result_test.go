package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

const ms = time.Millisecond

func slotOf(sit situation, took time.Duration, utilization float64, latency time.Duration, most float64) figures {
	l := load.NewLatencies()
	l.Record(latency)
	f := figures{situation: sit, Took: took.Seconds(), Utilization: utilization, Most: most}
	f.answered(&load.Outcome{Latency: l})
	return f
}

func TestSummarize(t *testing.T) {
	alone := situation{Neighbour: neighbour{Kind: nobody}}
	again := alone
	again.Again = true
	beside := situation{Neighbour: neighbour{Kind: onMemory, Threads: 4}}
	capped := situation{Neighbour: neighbour{Kind: onCPU, Threads: 4, Capped: true}}
	reserved := capped
	reserved.Reserved = true
	var slots []figures
	for _, slow := range []time.Duration{1, 1, 9} { // the last round is disturbed
		slots = append(slots, slotOf(beside, 4*time.Second*slow, 0.5, 3*ms*slow, 0),
			slotOf(reserved, time.Second, 1, ms, 9000),
			slotOf(capped, 2*time.Second, 0.5, 2*ms, 4000), slotOf(alone, time.Second*slow, 1, ms*slow, 9000),
			slotOf(again, time.Second, 1, 1100*time.Microsecond, 9000))
	}
	r := summarize(slots, []situation{alone, again, capped, reserved, beside})
	want := []figures{
		{situation: alone, Took: 1, Slowdown: 1, Utilization: 1, Scheduling: 1, Hardware: 1, P50: 1, P99: 1, Most: 9000,
			Requests: 3},
		{situation: again, Took: 1, Slowdown: 1, Utilization: 1, Scheduling: 1, Hardware: 1, P50: 1.1, P99: 1.1,
			ChangeP99: 0.1, Most: 9000, Requests: 3},
		{situation: capped, Took: 2, Slowdown: 2, Utilization: 0.5, Scheduling: 2, Hardware: 1, P50: 2, P99: 2,
			ChangeP99: 1, Most: 4000, Requests: 3},
		{situation: reserved, Took: 1, Slowdown: 1, Utilization: 1, Scheduling: 1, Hardware: 1, P50: 1, P99: 1,
			Most: 9000, Requests: 3},
		{situation: beside, Took: 4, Slowdown: 4, Utilization: 0.5, Scheduling: 2, Hardware: 2, P50: 3, P99: 3,
			ChangeP99: 2, Requests: 3},
	}
	// The histogram keeps three digits.
	if diff := cmp.Diff(want, r.Rows, cmpopts.EquateApprox(0.002, 0.002), cmpopts.EquateEmpty(),
		cmp.AllowUnexported(figures{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	r.row(reserved).Utilization, r.row(alone).Utilization = 0.1, 0.1
	if worst := r.worst(); worst == nil || worst.Utilization != 0.5 || worst.Reserved {
		t.Errorf("worst: %+v", worst)
	}
	r.Rows[3].Batch = split{Wanted: 10, Shortfall: 0.2, Owed: 0.05}
	var aims []string
	for _, f := range r.Aims() {
		aims = append(aims, fmt.Sprintf("%s %.3g %v", f.Name, f.Value, f.Met()))
	}
	wantAims := []string{"shortfall of the batch job, alone 0 false", "p99 of memcached / alone, alone again 1.1 true",
		"shortfall of the batch job, capped cpu x4, reserve 0.02 false",
		"  of it behind the neighbour 0.005 true", "p99 of memcached / alone, capped cpu x4, reserve 1 true"}
	if diff := cmp.Diff(wantAims, aims); diff != "" {
		t.Errorf("aims (-want +got):\n%s", diff)
	}
	if got, want := r.Rows[3].parts(), []float64{0, 0, 0, 1}; !cmp.Equal(want, got) {
		t.Errorf("parts %v, want %v", got, want)
	}
	if got, want := r.Rows[0].parts(), []float64{0.1, 0, 0, 0.9}; !cmp.Equal(want, got) {
		t.Errorf("parts without a split %v, want %v", got, want)
	}
	var picture bytes.Buffer
	if err := r.Chart().SVG(&picture); err != nil || !strings.Contains(picture.String(), "burstable memory x4") {
		t.Errorf("%v, chart:\n%s", err, picture.String())
	}
	var page bytes.Buffer
	r.WriteText(&page)
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
	want := []string{"alone", "alone again", "burstable cpu x4", "capped cpu x4", "burstable memory x4",
		"capped memory x4", "burstable sleepers x64", "capped sleepers x64"}
	if diff := cmp.Diff(want, names(situations(2, false, false))); diff != "" {
		t.Errorf("situations (-want +got):\n%s", diff)
	}
	want = []string{"alone", "alone again", "burstable cpu x1", "burstable cpu x2", "burstable cpu x4",
		"burstable cpu x8", "burstable cpu x16", "capped cpu x4", "burstable memory x4", "capped memory x4",
		"burstable sleepers x1", "burstable sleepers x2", "burstable sleepers x4", "burstable sleepers x8",
		"burstable sleepers x16", "burstable sleepers x64", "capped sleepers x64"}
	if diff := cmp.Diff(want, names(situations(2, true, false))); diff != "" {
		t.Errorf("with the sweep (-want +got):\n%s", diff)
	}
	want = []string{"alone", "alone again", "alone, reserve", "burstable cpu x4", "burstable cpu x4, reserve",
		"capped cpu x4", "capped cpu x4, reserve"}
	if diff := cmp.Diff(want, names(situations(2, false, true))[:len(want)]); diff != "" {
		t.Errorf("with reserve (-want +got):\n%s", diff)
	}
	if n := len(situations(2, true, true)); n != 2+1+2*6+9+2 {
		t.Errorf("%d situations", n)
	}
}

func TestSplit(t *testing.T) {
	one, short := 1.0, 360*ms
	d := report.Diagnosis{Elapsed: 2 * time.Second,
		Containers: []report.Diagnosed{{Cgroup: "/other"}, {Cgroup: "/lab/target", Reserved: &one,
			Wanted: time.Second, Received: 600 * ms, Short: &short,
			Waits: []report.Wait{{Cause: report.CauseNeighbour, Time: 300 * ms, Short: 270 * ms},
				{Cause: report.CauseKernel, Time: 90 * ms, Short: 90 * ms},
				{Cause: report.CauseIdle}},
			Neighbours: []report.Neighbour{{Cgroup: "/lab/neighbour", Time: 200 * ms, Forced: 100 * ms,
				Phantom: 50 * ms,
				Waking:  10 * ms},
				{Cgroup: "/", Time: 100 * ms, Forced: 100 * ms}}}}}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(text, "/lab/target", "/lab/neighbour")
	if err != nil {
		t.Fatal(err)
	}
	want := split{Wanted: 2, Received: 1.2, Reserved: 4, Shortfall: 0.72, Owed: 0.36, Forced: 0.2, Phantom: 0.1,
		Waking: 0.02,
		Waits: map[string]float64{string(report.CauseNeighbour): 0.4, others: 0.2, string(report.CauseKernel): 0.18,
			string(report.CauseIdle): 0}}
	if diff := cmp.Diff(want, s.plus(s), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("split (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{string(report.CauseNeighbour), others, string(report.CauseKernel)},
		s.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "{", "{}"} {
		if s, err := read([]byte(bad), "/lab/target", "/lab/neighbour"); err == nil {
			t.Errorf("%q is taken: %+v", bad, s)
		}
	}
}

func TestSeparated(t *testing.T) {
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
		{"0", "1-2", true, true}, {"0", "0-2", true, false}, {"", "1-2", true, false}, {"0-1", "2", true, false},
		{"0", "", true, false},
		{"0-2", "0-2", false, true}, {"", "", false, true}, {"0", "1-2", false, false},
	} {
		if err := separated(set(c.own), set(c.others), c.reserve); (err == nil) != c.ok {
			t.Errorf("%q and %q, reserve %v: %v", c.own, c.others, c.reserve, err)
		}
	}
}

func TestHighest(t *testing.T) {
	for _, c := range []struct{ true, want float64 }{{100, 0}, {500, 500}, {100000, 31000}, {9000, 9000}} {
		var tried []float64
		got, least := highest(500, 32000, 12, 2*ms, func(rate float64) time.Duration {
			tried = append(tried, rate)
			return time.Duration(rate / c.true * float64(2*ms))
		})
		if got > c.true || got < 0.97*c.want {
			t.Errorf("of %v: found %v after %v", c.true, got, tried)
		}
		if want := time.Duration(500 / c.true * float64(2*ms)); least != want {
			t.Errorf("of %v: p99 %v at the lowest rate, want %v", c.true, least, want)
		}
	}
}

// TestTable compares the formulas with the published figure and with a period that is played through.
func TestTable(t *testing.T) {
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
	r := tableResult{Machine: frame.Machine{CPUs: 2}, Cases: tableCases(2)}
	for i, want := range []float64{2.0 / 3, 0.75, 1, 1} {
		if diff := cmp.Diff(want, r.Cases[i].Expected, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("two CPUs, %s (-want +got):\n%s", r.Cases[i].name(), diff)
		}
		r.Cases[i].Got = r.Cases[i].Expected + 0.04
	}
	r.Cases[1].Got += 0.02
	for i, f := range r.Aims() {
		if f.Met() != (i != 1) {
			t.Errorf("%+v", f)
		}
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("reservation", s, args)
}

func TestParse(t *testing.T) {
	if s, err := parse([]string{"-seconds", "2", "-only", "memory", "-reserve"}); err != nil ||
		s.slot != 2*time.Second || len(s.situations) != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range [][]string{{"-seconds", "0.5"}, {"-rounds", "0"}, {"-rate", "10"},
		{"-rate", "2000", "-highest", "1000"}, {"-rate", "200", "-highest", "400"}, {"-bound", "0s"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
