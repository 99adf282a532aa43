package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/capacity"
	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/replay"
	"plimsoll/internal/report"
)

// incident writes a record of ten minutes: each second a job of 200 ms of CPU time of one thread, limited to 50 ms in
// 100, and a neighbour. Minute 6 is missing.
func incident(t *testing.T, dir string, at time.Time, change func(n int, m *flight.Minute)) {
	t.Helper()
	r, err := disk.OpenRing(disk.Options{Dir: dir, MaxBytes: 1 << 20, MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		start := at.Add(time.Duration(n) * time.Minute).UnixMilli()
		web := flight.Minute{Cgroup: "/kube/web", Namespace: "shop", Pod: "web", Container: "nginx", Start: start,
			PeriodUs: 100_000, LimitUs: 50_000,
			Periods: 600, UsedUs: 12_000_000, PeakUs: 50_000, ThrottledUs: 9_000_000, Throttles: 180, QuotaAt: []int32{
				0}, QuotaUs: []int64{50_000}}
		other := flight.Minute{Cgroup: "/kube/other", Namespace: "shop", Pod: "other", Container: "main", Start: start,
			PeriodUs: 100_000, LimitUs: 200_000,
			Periods: 600, UsedUs: 6_000_000, PeakUs: 10_000, QuotaAt: []int32{0}, QuotaUs: []int64{200_000}}
		for i := range 600 {
			used, lost := float32(0), int32(0)
			if i%10 < 4 {
				used = 5000
			}
			if i%10 < 3 {
				lost = 50
			}
			web.Used, web.ThrottledMs = append(web.Used, used), append(web.ThrottledMs, lost)
			other.Used = append(other.Used, 1000)
		}
		b := flight.Batch{Rows: []flight.Minute{web, other}, Covered: flight.Spans{{From: start, To: start + 60_000}}}
		if change != nil {
			change(n, &b.Rows[0])
		}
		if n == 6 {
			continue
		}
		if err := r.Write(b, at.Add(10*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}

func replayed(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRoot()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"replay", "--record-dir", dir, "--cpus", "4"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

const incidentAt = "2026-11-25T03:12:00Z"

// TestReplay: a job of 200 ms that a limit of half a CPU stretches to 350 ms is done at once under auto, and under a
// limit of
// 1.
func TestReplay(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	incident(t, dir, at, nil)
	for _, args := range [][]string{{"--policy", "auto"}, {"--policy", "none", "--limit", "1"}} {
		text, err := replayed(t, dir, append([]string{"nginx", "--at", incidentAt, "--for", "5m", "--json"},
			args...)...)
		var r report.Replay
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Containers) != 1 {
			t.Fatalf("%v: %v\n%s", args, err, text)
		}
		c := r.Containers[0]
		if c.Was.Lost.Likely != 45*time.Second || c.Was.Delay.Likely != 150*time.Millisecond {
			t.Errorf("what was: %+v", c.Was)
		}
		if c.Would.Lost.High > 50*time.Millisecond || c.Would.Delay.High > time.Millisecond ||
			c.Would.Used.Likely.Round(time.Second) != time.Minute {
			t.Errorf("%v: what would have been: %+v", args, c.Would)
		}
		if r.Neighbours == nil || r.Neighbours.Count != 1 || len(r.Gaps) != 0 {
			t.Errorf("%+v %+v", r.Neighbours, r.Gaps)
		}
	}
	text, err := replayed(t, dir, "nginx", "--at", "2026-11-25T03:12:30Z", "--for", "1m")
	if err != nil || strings.Contains(text, "gap:") {
		t.Errorf("of a time that begins in the middle of a minute all is recorded: %v\n%s", err, text)
	}
	text, err = replayed(t, dir, "nginx", "--at", incidentAt, "--policy", "none", "--limit", "0.25")
	if err != nil ||
		!strings.Contains(text, "gap: nothing was recorded from 2026-11-25 03:18 UTC to 2026-11-25 03:19 UTC") ||
		!strings.Contains(text, "0.25 CPUs") {
		t.Errorf("%v\n%s", err, text)
	}
	t.Log("\n" + text)
}

// TestReplayOfACap: the flag sets the cap, and the head names it. A cap of 100 % grants nothing above the limit.
func TestReplayOfACap(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	incident(t, dir, at, nil)
	args := []string{"nginx", "--at", incidentAt, "--for", "1m", "--policy", "cfsQuotaBurstOnly"}
	for _, c := range []struct {
		percent int64
		args    []string
		grants  bool
	}{{300, args, true}, {100, append(args, "--quota-burst", "100%"), false}} {
		text, err := replayed(t, dir, append(c.args, "--json")...)
		var r report.Replay
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Containers) != 1 {
			t.Fatalf("%v\n%s", err, text)
		}
		if would := r.Containers[0].Would; r.Burst != 1000 || r.QuotaBurst != c.percent ||
			(would.Above.High > 0) != c.grants {
			t.Errorf("%d %%: %d, %d, %+v", c.percent, r.Burst, r.QuotaBurst, would)
		}
		want := fmt.Sprintf("policy cfsQuotaBurstOnly, burst 1000 %%, cap %d %%, threshold 50 %%\n", c.percent)
		if text, err := replayed(t, dir, c.args...); err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: no %q in\n%s", err, want, text)
		}
	}
}

// TestReplayDraws: the gap is one in the picture, and the axis holds a limit that nothing reaches.
func TestReplayDraws(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	incident(t, dir, at, nil)
	file := filepath.Join(dir, "p.svg")
	if text, err := replayed(t, dir, "nginx", "--at", incidentAt, "--limit", "20", "--figure", file); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The legend's three lines, two rules, and each of five curves in two parts.
	if n := strings.Count(string(svg), `stroke-width="1.1"`); n != 3+2*5 {
		t.Errorf("%d curves and parts of curves, want 13", n)
	}
	if !strings.Contains(string(svg), ">limit 20<") || !strings.Contains(string(svg), ">20<") {
		t.Error("the limit of 20 CPUs is beyond the axis")
	}
}

// TestLimitsAreSpelled with the digits that a limit has. The axis of a history holds one that offline work never got.
func TestLimitsAreSpelled(t *testing.T) {
	limit, svg := 20.0, bytes.Buffer{}
	c := report.HistoryContainer{Figures: report.HistoryFigures{Limit: &limit}}
	if err := historyFigure(report.History{Containers: []report.HistoryContainer{c}}).SVG(&svg); err != nil ||
		!strings.Contains(svg.String(), ">20<") {
		t.Errorf("the limit of 20 CPUs is beyond the axis: %v", err)
	}
	for want, cpus := range map[string]float64{"limit 2.25": 2.25, "limit 12.5": 12.5, "limit 100": 100,
		"limit 0.333": 1.0 / 3} {
		if got := limitRule(cpus)[0].Name; got != want {
			t.Errorf("%v CPUs: %q, want %q", cpus, got, want)
		}
	}
}

// TestReplayLooksFurther: the record after the time says how an episode ended that began in it, and nothing else: later
// restarts, names, periods, limits and refills are not those of the time.
func TestReplayLooksFurther(t *testing.T) {
	at := time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	for name, change := range map[string]func(m *flight.Minute){
		"nothing": func(*flight.Minute) {},
		"restart": func(m *flight.Minute) { m.Cgroup = "/kube/new" },
		"name":    func(m *flight.Minute) { m.Container = "httpd" },
		"period":  func(m *flight.Minute) { m.PeriodUs = 50_000 },
		"limit":   func(m *flight.Minute) { m.LimitUs = 100_000 },
		"refills": func(m *flight.Minute) { m.Refills, m.RefillAt = 2, []int32{0, 0} },
	} {
		dir := t.TempDir()
		incident(t, dir, at, func(n int, m *flight.Minute) {
			if n > 0 {
				change(m)
			}
		})
		text, err := replayed(t, dir, "--at", incidentAt, "--for", "40.2s", "--json")
		var r report.Replay
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Containers) != 2 {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		c := r.Containers[0]
		if c.Name == "shop/other/main" {
			c = r.Containers[1]
		}
		if c.Name != "shop/web/nginx" || c.Limits[0] != 0.5 || c.Was.Refills != 0 || len(r.Warnings)+len(r.Gaps) > 0 {
			t.Errorf("%s: %+v, %v, %v", name, c, r.Warnings, r.Gaps)
		}
		if len(r.Conditions) != 1 { // that a container was still throttled as the record ended
			t.Errorf("%s: %q", name, r.Conditions)
		}
	}
}

// TestReplayTellsOfAGapAtTheEnd: the record after the time shows that it is one. What is not on disk yet is one too: a
// replay has none of it.
func TestReplayTellsOfAGapAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	incident(t, dir, time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC), nil)
	for at, gap := range map[string]string{"2026-11-25T03:17:00Z": "03:18", "2026-11-25T03:21:00Z": "03:22"} {
		text, err := replayed(t, dir, "nginx", "--at", at, "--for", "100s")
		if err != nil || !strings.Contains(text, "gap: nothing was recorded from 2026-11-25 "+gap+" UTC") {
			t.Errorf("%v\n%s", err, text)
		}
	}
	dir, end := t.TempDir(), time.Now().UTC().Truncate(time.Minute).Add(-time.Minute)
	incident(t, dir, end.Add(-10*time.Minute), nil)
	text, err := replayed(t, dir, "nginx", "--at", "2m30s", "--for", "10m", "--json")
	var r report.Replay
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Gaps) != 1 || !r.Gaps[0].From.Equal(end) {
		t.Errorf("%v: %v\n%s", r.Gaps, err, text)
	}
}

// TestReplayOfBadInput: what cannot be replayed is said clearly.
func TestReplayOfBadInput(t *testing.T) {
	at := time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	whole, other := t.TempDir(), t.TempDir()
	incident(t, whole, at, nil)
	incident(t, other, at, func(n int, m *flight.Minute) {
		if n == 3 {
			m.PeriodUs = 50_000
		}
	})
	cut := t.TempDir()
	incident(t, cut, at, nil)
	names, err := filepath.Glob(filepath.Join(cut, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Truncate(name, 500); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir  string
		args []string
		want string
	}{
		{whole, nil, "--at is missing"},
		{whole, []string{"--at", "2026-10-25 25:30"}, "is not a time"},
		{whole, []string{"--at", "2999-01-01T00:00:00Z"}, "still to come"},
		{whole, []string{"--at", incidentAt, "--for", "0s"}, "--for 0s"},
		{whole, []string{"--at", incidentAt, "--policy", "quick"}, "is not one of"},
		{whole, []string{"--at", incidentAt, "--threshold", "101"}, "outside 0..100"},
		{whole, []string{"--at", incidentAt, "--burst", "inf"}, "--burst +Inf"},
		{whole, []string{"--at", incidentAt, "--quota-burst", "99%"}, "--quota-burst 0.99"},
		{whole, []string{"--at", incidentAt, "--quota-burst", "inf"}, "--quota-burst +Inf"},
		{whole, []string{"--at", incidentAt, "nginx", "--limit", "NaN"}, "--limit NaN"},
		{whole, []string{"--at", incidentAt, "--limit", "0.8"}, "--limit needs a CONTAINER"},
		{whole, []string{"--at", incidentAt, "nobody"}, "no container"},
		{whole, []string{"--at", "2026-11-25T05:00:00Z"}, "nothing was recorded from"},
		{whole, []string{"--at", "2026-11-25T03:11:00Z", "--for", "45s"}, "nothing was recorded from"},
		{whole, []string{"--at", incidentAt, "--figure", "a.gif"}, "ends in .svg or .png"},
		{filepath.Join(whole, "none"), []string{"--at", incidentAt}, "there is no record"},
		{other, []string{"--at", incidentAt, "nginx"}, "changed from 100ms to 50ms"},
		{cut, []string{"--at", incidentAt}, "damaged record"},
	} {
		if text, err := replayed(t, c.dir, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s\n%s", c.args, err, c.want, text)
		}
	}
}

// TestReplayThatIsTooLarge: a time of more periods and work than are taken is refused, with the time that is not.
func TestReplayThatIsTooLarge(t *testing.T) {
	from := time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	var rows []flight.Minute
	for n := range 60 {
		rows = append(rows, flight.Minute{Cgroup: fmt.Sprint("/kube/", n%2), Start: from.UnixMilli(), PeriodUs: 1000,
			UsedUs: 600_000_000})
	}
	// In an hour 3.6 million periods of each of two, and 3.6 million pieces of 5 ms of each.
	for length, hint := range map[time.Duration]string{time.Hour: "a shorter --for: 33m57s at most",
		30 * time.Minute: ""} {
		err := fits(replay.Pieces(rows[:int(length.Minutes())], length), length)
		var said interface{ Hint() string }
		if hint == "" && err != nil || hint != "" && (!errors.As(err, &said) || said.Hint() != hint) {
			t.Errorf("%s: %v, %v", length, err, said)
		}
	}
}

// TestReplayOfAThrottleWithoutAnEnd: the work that its threads would have done is in the bound, and in the hint.
func TestReplayOfAThrottleWithoutAnEnd(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	r, err := disk.OpenRing(disk.Options{Dir: dir, MaxBytes: 1 << 20, MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var b flight.Batch
	for n := range 21 { // 64 threads with a limit of 4 CPUs
		start := at.Add(time.Duration(n) * time.Minute).UnixMilli()
		b.Rows = append(b.Rows, flight.Minute{Cgroup: "/kube/web", Container: "web", Start: start, PeriodUs: 100_000,
			LimitUs: 400_000, Periods: 600, UsedUs: 240_000_000, PeakUs: 400_000, ThrottledUs: 56_000_000,
			Used: slices.Repeat([]float32{40_000}, 600), ThrottledMs: slices.Repeat([]int32{93}, 600),
			QuotaAt: []int32{0}, QuotaUs: []int64{400_000}})
	}
	b.Covered = flight.Spans{{From: at.UnixMilli(), To: at.Add(21 * time.Minute).UnixMilli()}}
	if err := r.Write(b, at.Add(21*time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := replayed(t, dir, "web", "--cpus", "64", "--at", incidentAt, "--for", "20m")
	var said interface{ Hint() string }
	if !errors.As(err, &said) || !strings.Contains(said.Hint(), "a shorter --for:") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestReplayBesideAChangedPeriod: a container whose period changed is left out of the replay of another, and of all.
func TestReplayBesideAChangedPeriod(t *testing.T) {
	dir := t.TempDir()
	incident(t, dir, time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC), func(n int, m *flight.Minute) {
		if n == 3 {
			m.PeriodUs = 50_000
		}
	})
	for _, who := range [][]string{nil, {"other"}} {
		text, err := replayed(t, dir, append(who, "--at", incidentAt, "--for", "5m", "--json")...)
		var r report.Replay
		if err != nil || json.Unmarshal([]byte(text), &r) != nil {
			t.Fatalf("%v: %v\n%s", who, err, text)
		}
		if len(r.Containers) != 1 || r.Containers[0].Name != "shop/other/main" || len(r.Warnings) != 1 ||
			!strings.Contains(r.Warnings[0], "changed from 100ms to 50ms at 2026-11-25 03:15 UTC; it is left out") {
			t.Errorf("%v: %+v, %q", who, r.Containers, r.Warnings)
		}
	}
}

// TestReplayOfARestart: a container that was restarted has two groups, one that was renamed has one, and minutes that a
// clock that was set back repeats are replayed once.
func TestReplayOfARestart(t *testing.T) {
	at := time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	for want, change := range map[string]func(n int, m *flight.Minute){
		"was restarted": func(n int, m *flight.Minute) {
			if n >= 2 {
				m.Cgroup = "/kube/web2"
			}
		},
		"was called shop/web/httpd before": func(n int, m *flight.Minute) {
			if n < 2 {
				m.Container = "httpd"
			}
		},
		"is there twice": func(n int, m *flight.Minute) {
			if n == 3 {
				m.Start -= time.Minute.Milliseconds()
			}
		},
	} {
		dir := t.TempDir()
		incident(t, dir, at, change)
		text, err := replayed(t, dir, "--at", incidentAt, "--for", "5m", "--policy", "none")
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %v\n%s", want, err, text)
		}
	}
}

// TestRecordAsRecording: simulate and advise take the flight recorder's files: all containers, without the gap, with
// their limits.
func TestRecordAsRecording(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	incident(t, dir, at, nil)
	files, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"simulate", "data", "--burst", "1", "--cpus", "4"}, {"advise", "--cpus", "4"}} {
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append(args, files...))
		if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), "shop/web/nginx") {
			t.Errorf("%v: %v\n%s", args, err, out.String())
		}
	}
	if _, err := capacity.Load([]string{filepath.Join(dir, "other.parquet")}, 4, 0); err == nil ||
		!strings.Contains(err.Error(), "not named as") {
		t.Errorf("another file: %v", err)
	}
}
