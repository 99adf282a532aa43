package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/node"
	"plimsoll/internal/report"
)

// TestMoment: times as people write them, on the clock of Berlin, which was set back on October 25.
func TestMoment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, berlin)
	for text, want := range map[string]string{
		"03:12": "2026-11-25T03:12:00+01:00", "03:12:30": "2026-11-25T03:12:30+01:00",
		"13:00":           "2026-11-24T13:00:00+01:00",
		"2026-11-24 3:12": "2026-11-24T03:12:00+01:00", "3:12": "2026-11-25T03:12:00+01:00",
		"2026-11-24 03:12": "2026-11-24T03:12:00+01:00", "2026-07-01T03:12": "2026-07-01T03:12:00+02:00",
		"2026-11-24":           "2026-11-24T00:00:00+01:00",
		"2026-11-25T03:12:00Z": "2026-11-25T04:12:00+01:00", "90m": "2026-11-25T10:30:00+01:00",
		"2026-10-25 01:30": "2026-10-25T01:30:00+02:00", "2026-10-25 03:30": "2026-10-25T03:30:00+01:00",
		"2026-10-25T02:30:00+01:00": "2026-10-25T02:30:00+01:00", "2026-10-25": "2026-10-25T00:00:00+02:00",
		// wrong
		"2026-10-25 02:30": "is there twice", "2026-03-29 02:30": "is set forward", "yesterday": "is not a time",
		"25:00": "is not a time", "-5m": "is not a time",
	} {
		got, err := moment(text, now)
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		case got.In(berlin).Format(time.RFC3339) != want:
			t.Errorf("%s: %s, want %s", text, got.In(berlin).Format(time.RFC3339), want)
		}
	}
}

// TestMomentOfTheRepeatedHour: a time of the clock that was there twice today, or once so far, is not yesterday's.
func TestMomentOfTheRepeatedHour(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ now, text, want string }{
		{"2026-10-25T02:30:00+01:00", "02:45", "is there twice"}, // 45 minutes ago, and in 15
		{"2026-10-25T02:30:00+01:00", "02:15", "is there twice"},
		{"2026-10-25T02:30:00+01:00", "02:45:30", "is there twice"},
		{"2026-10-25T02:30:00+01:00", "03:00", "2026-10-24T03:00:00+02:00"},
		{"2026-10-25T02:30:00+02:00", "02:45", "2026-10-24T02:45:00+02:00"},
		{"2026-10-25T02:30:00+01:00", "1:45", "2026-10-25T01:45:00+02:00"},
		{"2026-03-29T03:10:00+02:00", "02:30", "is set forward"},
		{"2026-03-29T01:50:00+01:00", "02:30", "2026-03-28T02:30:00+01:00"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := moment(c.text, now.In(berlin))
		said := got.In(berlin).Format(time.RFC3339)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("at %s %s: %s, want %s", c.now, c.text, said, c.want)
		}
	}
}

func TestSpanOfAHistory(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ from, to, want string }{{"", "", "11:00 12:00"}, {"", "03:12", "02:12 03:12"},
		{"03:00", "03:12", "03:00 03:12"}, {"03:12", "03:00", "is not before"}, {"x", "", "--from"}, {"", "x",
			"--to"}} {
		f := historyFlags{from: c.from, to: c.to}
		from, to, err := f.span(now)
		got := from.Format("15:04") + " " + to.Format("15:04")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q to %q: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// recordedMinutes writes a record: two containers, of which one sleeps in the second minute;
// minutes 4 and 5 are missing.
func recordedMinutes(t *testing.T, dir string, t0 time.Time) {
	t.Helper()
	r, err := disk.OpenRing(disk.Options{Dir: dir, MaxBytes: 1 << 20, MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 2, 3, 6} {
		start := t0.Add(time.Duration(n) * time.Minute).UnixMilli()
		web := flight.Minute{Cgroup: "/kube/web", Namespace: "shop", Pod: "web", Container: "nginx", Start: start,
			PeriodUs: 100_000, LimitUs: 50_000, Periods: 600,
			UsedUs: 30_000_000, PeakUs: 60_000, ThrottledUs: 1_500_000, Throttles: 40, Refills: 10, Used: []float32{
				1}, QuotaAt: []int32{0}, QuotaUs: []int64{75_000}}
		switch n {
		case 2:
			web.Waits = &flight.Waits{Wanted: 35_000_000, Received: 30_000_000, OwnLimit: 4_000_000,
				Neighbour: 1_000_000}
			web.Requests = &flight.Requests{Answered: 600, P50Us: 4000, P90Us: 9000, P99Us: 105_000,
				UnthrottledP99Us: 15_000, ResponseUs: 9_000_000, ThrottledUs: 3_000_000}
		case 3:
			web.Waits = &flight.Waits{Wanted: 30_500_000, Received: 30_000_000, Neighbour: 500_000}
			web.Requests = &flight.Requests{Answered: 90, Doubtful: 10, P50Us: -1, P90Us: -1, P99Us: -1,
				UnthrottledP99Us: -1, ResponseUs: -1, ThrottledUs: -1}
		}
		b := flight.Batch{Rows: []flight.Minute{web}, Covered: flight.Spans{{From: start, To: start + 60_000}}}
		if n != 1 {
			b.Rows = append(b.Rows, flight.Minute{Cgroup: "/lab/a", Container: "/lab/a", Start: start,
				PeriodUs: 100_000, LimitUs: -1, UsedUs: 6_000_000, Used: []float32{1}})
		}
		if err := r.Write(b, t0.Add(10*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistory: figures of all containers, of one by each of its names, gaps as gaps, and a cut file as a warning.
func TestHistory(t *testing.T) {
	dir, t0 := t.TempDir(), time.Date(2026, 11, 25, 3, 10, 0, 0, time.UTC)
	recordedMinutes(t, dir, t0)
	h, err := readHistory(dir, t0, t0.Add(7*time.Minute), t0.Add(time.Hour), "")
	if err != nil {
		t.Fatal(err)
	}
	gap := report.Gap{From: t0.Add(4 * time.Minute), To: t0.Add(6 * time.Minute)}
	if diff := cmp.Diff([]report.Gap{gap}, h.Gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	half := 0.5
	want := report.HistoryFigures{Limit: &half, Quota: 0.75, Mean: 0.5, Peak: 0.6, Used: 150 * time.Second,
		Throttled: 7500 * time.Millisecond, Throttles: 200, Refills: 50, Periods: 3000,
		Requests: &report.HistoryRequests{Answered: 690, Doubtful: 10,
			Response: &report.Quantiles{P50: 4 * time.Millisecond, P90: 9 * time.Millisecond,
				P99: 105 * time.Millisecond},
			Unthrottled: 15 * time.Millisecond, Time: 9 * time.Second, Throttled: 3 * time.Second},
		Waits: &report.HistoryWaits{Wanted: 65500 * time.Millisecond, Received: time.Minute,
			Causes: map[report.Cause]time.Duration{report.CauseOwnLimit: 4 * time.Second,
				report.CauseNeighbour: 1500 * time.Millisecond}}}
	if diff := cmp.Diff(want, h.Containers[1].Figures); diff != "" || h.Containers[1].Name != "shop/web/nginx" {
		t.Errorf("%s (-want +got):\n%s", h.Containers[1].Name, diff)
	}
	if f := h.Containers[0].Figures; f.Limit != nil || f.Mean != 0.08 { // of five minutes, in one of which it slept
		t.Errorf("%+v", f)
	}
	for _, who := range []string{"shop/web/nginx", "nginx", "/kube/web"} {
		h, err := readHistory(dir, t0, t0.Add(7*time.Minute), t0.Add(time.Hour), who)
		if err != nil || len(h.Containers) != 1 || len(h.Containers[0].Minutes) != 5 {
			t.Errorf("%s: %+v, %v", who, h.Containers, err)
		}
	}
	if _, err := readHistory(dir, t0, t0.Add(7*time.Minute), t0.Add(time.Hour), "other"); err == nil ||
		!strings.Contains(err.Error(), "no container") {
		t.Errorf("an unknown container: %v", err)
	}
	if _, err := readHistory(filepath.Join(dir, "none"), t0, t0.Add(time.Hour), t0.Add(time.Hour), ""); err == nil ||
		!errors.Is(err, os.ErrNotExist) {
		t.Errorf("no record: %v", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil || os.Truncate(names[0], 400) != nil {
		t.Fatal(err)
	}
	h, err = readHistory(dir, t0, t0.Add(7*time.Minute), t0.Add(time.Hour), "")
	if err != nil || len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "damaged record") || len(h.Gaps) != 2 {
		t.Errorf("%v %v, %v", h.Warnings, h.Gaps, err)
	}
}

// TestHistoryKeepsNoPeriods: the lists of a row are let go as it is read, but for the quotas, which a figure needs.
func TestHistoryKeepsNoPeriods(t *testing.T) {
	m := flight.Minute{UsedUs: 1, Used: []float32{1}, ThrottledMs: []int32{1}, RefillAt: []int32{0},
		QuotaAt: []int32{0}, QuotaUs: []int64{1}}
	if want := (flight.Minute{UsedUs: 1, QuotaUs: []int64{1}}); !withoutPeriods(&m) || !cmp.Equal(m, want) {
		t.Errorf("%+v", m)
	}
}

// TestHistoryOfAStop: where an agent stopped in the middle of a minute, the rest of it is a gap and not idle.
func TestHistoryOfAStop(t *testing.T) {
	t0 := time.Date(2026, 11, 25, 3, 10, 0, 0, time.UTC)
	start := t0.UnixMilli()
	r := disk.Range{Covered: flight.Spans{{From: start, To: start + 80_000},
		{From: start + 90_500, To: start + 120_000}}}
	for n := range int64(2) {
		r.Rows = append(r.Rows, flight.Minute{Cgroup: "/a", Start: start + n*60_000, PeriodUs: 100_000,
			UsedUs: 24_750_000, Used: []float32{1}})
	}
	h := historyOf(r, t0, t0.Add(2*time.Minute), t0.Add(time.Hour), "a")
	gap := report.Gap{From: t0.Add(80 * time.Second), To: t0.Add(90500 * time.Millisecond)}
	if diff := cmp.Diff([]report.Gap{gap}, h.Gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	c := h.Containers[0]
	if c.Minutes[1].Mean != 0.5 || c.Figures.Mean != 49.5/109.5 {
		t.Errorf("the mean of a minute of which 49.5 s are recorded: %v, of all: %v", c.Minutes[1].Mean, c.Figures.Mean)
	}
	var text strings.Builder
	if err := h.Text(&text); err != nil ||
		!strings.Contains(text.String(), "from 2026-11-25 03:11:20.0 UTC to 2026-11-25 03:11:30.5 UTC") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestGapAtTheEnd: what the agent has not written yet is no gap, and is left out of the figure. In the past a gap is
// one, however short.
func TestGapAtTheEnd(t *testing.T) {
	t0 := time.Date(2026, 11, 25, 3, 10, 0, 0, time.UTC)
	end := t0.Add(time.Minute)
	covered := flight.Spans{{From: t0.UnixMilli(), To: end.UnixMilli()}}
	for _, c := range []struct {
		to, now time.Duration // since the end of the record
		gap     bool
	}{{time.Minute, time.Minute, false}, {2 * time.Minute, 2 * time.Minute, false},
		{3 * time.Minute, 3 * time.Minute, true}, {time.Minute, time.Hour, true}, {time.Millisecond, time.Hour, true},
		{0, time.Hour, false}} {
		want := []report.Gap{}
		if c.gap {
			want = append(want, report.Gap{From: end, To: end.Add(c.to)})
		}
		if diff := cmp.Diff(want, historyOf(disk.Range{Covered: covered}, t0, end.Add(c.to), end.Add(c.now),
			"").Gaps); diff != "" {
			t.Errorf("%v after the end, now %v (-want +got):\n%s", c.to, c.now, diff)
		}
	}
	now := end.Add(2 * time.Minute)
	h := historyOf(disk.Range{Covered: covered}, t0, now, now, "")
	list := minutely(h, report.HistoryContainer{}, func(f report.HistoryFigures) float64 { return f.Mean })
	if list[0] != 0 || !math.IsNaN(list[1]) || !math.IsNaN(list[2]) {
		t.Errorf("%v", list)
	}
}

// TestHistoryOfARestart: the rows of two agents are one minute, also in the figure.
func TestHistoryOfARestart(t *testing.T) {
	t0 := time.Date(2026, 11, 25, 3, 10, 0, 0, time.UTC)
	start := t0.UnixMilli()
	r := disk.Range{Covered: flight.Spans{{From: start, To: start + 20_000},
		{From: start + 30_000, To: start + 60_000}}}
	for _, used := range []int64{10_000_000, 30_000_000} {
		r.Rows = append(r.Rows, flight.Minute{Cgroup: "/a", Start: start, PeriodUs: 100_000, LimitUs: used / 200,
			Periods: 200, PeakUs: used / 100, UsedUs: used, ThrottledUs: 1_500_000, Used: []float32{1}})
	}
	h := historyOf(r, t0, t0.Add(time.Minute), t0.Add(time.Hour), "a")
	limit := 1.5
	want := []report.HistoryMinute{{Start: t0, HistoryFigures: report.HistoryFigures{Limit: &limit, Mean: 0.8, Peak: 3,
		Used: 40 * time.Second, Throttled: 3 * time.Second, Periods: 400}}}
	if diff := cmp.Diff(want, h.Containers[0].Minutes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := minutely(h, h.Containers[0], func(f report.HistoryFigures) float64 { return f.Mean }); got[0] != 0.8 {
		t.Errorf("in the figure: %v", got)
	}
}

// TestHistoryCommand: what a person types, and JSON.
func TestHistoryCommand(t *testing.T) {
	dir, t0 := t.TempDir(), time.Date(2026, 11, 25, 3, 10, 0, 0, time.UTC)
	recordedMinutes(t, dir, t0)
	run := func(args ...string) string {
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"history", "--record-dir", dir, "--from", "2026-11-25T03:10:00Z", "--to",
			"2026-11-25T03:17:00Z"}, args...))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	drawn := filepath.Join(t.TempDir(), "x.svg")
	if text := run("nginx", "--figure", drawn); strings.Count(text, "1.5s") != 5 || strings.Count(text, "105ms") != 1 ||
		strings.Count(text, "UNTHROTTLED") != 2 ||
		!strings.Contains(text, "5s      own_limit") || !strings.Contains(text, "gap") ||
		!strings.Contains(text, "2026-11-25 03:16 UTC") {
		t.Errorf("%s", text)
	}
	if text := run(); !strings.Contains(text, "shop/web/nginx") ||
		!strings.Contains(text, "nothing was recorded from 2026-11-25 03:14 UTC") {
		t.Errorf("%s", text)
	}
	for _, word := range []string{"shop/web/nginx", "p99 without the time throttled", "response times",
		"minutes from 03:10 UTC"} {
		if data, err := os.ReadFile(drawn); err != nil || !strings.Contains(string(data), word) {
			t.Errorf("the figure has no %q: %v", word, err)
		}
	}
	var h report.History
	if err := json.Unmarshal([]byte(run("--json")), &h); err != nil || len(h.Containers) != 2 ||
		h.Schema != report.HistorySchema {
		t.Errorf("%v %+v", err, h)
	}
}

// TestRecordDir: an agent with a state directory of its own has a record of its own, but for a folder that is given.
func TestRecordDir(t *testing.T) {
	for _, c := range []struct {
		state string
		args  []string
		want  string
	}{{node.DefaultStateDir, nil, recordFolder}, {"/tmp/x", nil, "/tmp/x/record"},
		{"/tmp/x", []string{"--record-dir=/data"}, "/data"}, {"/tmp/x", []string{"--record-dir="}, ""},
		{"/tmp/x", []string{"--record-dir=" + recordFolder}, recordFolder}} {
		var f flightFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(flags)
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if got := (&globals{Dirs: node.Dirs{StateDir: c.state}}).recordDir(f.set, f.dir); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
