package capacity

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
)

// recordOf writes ten minutes of two containers, of which the seventh is missing, and lists the files.
func recordOf(t *testing.T, change func(n int, m *flight.Minute)) []string {
	t.Helper()
	dir, at := t.TempDir(), time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)
	ring, err := disk.OpenRing(disk.Options{Dir: dir, MaxBytes: 1 << 20, MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		start := at.Add(time.Duration(n) * time.Minute).UnixMilli()
		b := flight.Batch{Covered: flight.Spans{{From: start, To: start + 60_000}}}
		for name, used := range map[string]float32{"api": 1000, "web": 2000} { // 10 and 20 ms a period
			m := flight.Minute{Cgroup: "/kube/" + name, Container: name, Start: start, PeriodUs: 100_000,
				LimitUs: 50_000, Periods: 600,
				UsedUs: 600 * 10 * int64(used), PeakUs: 50_000, QuotaAt: []int32{0}, QuotaUs: []int64{50_000}}
			for range 600 {
				m.Used = append(m.Used, used)
			}
			if change(n, &m); m.Periods > 0 {
				b.Rows = append(b.Rows, m)
			}
		}
		if n == 6 {
			continue
		}
		if err := ring.Write(b, at.Add(10*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRecordTrace: the flight recorder's files are one recording of all containers, in shares of the node, without the
// minute that is missing, each with its own limit.
func TestRecordTrace(t *testing.T) {
	d, err := Load(recordOf(t, func(int, *flight.Minute) {}), 4, 0)
	if err != nil || len(d.list) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	for i, r := range d.list {
		// 10 and 20 ms of 400
		if want, mean := []float64{0.025, 0.05}[i], r.demand.Mean(); mean < 0.99*want || mean > 1.01*want {
			t.Errorf("%s: %v on average, want %v", r.name, mean, want)
		}
		if n := r.demand.Len(); n < 5395 || n > 5400 || r.limit != 0.125 {
			t.Errorf("%s: %d periods of nine minutes, limit %v", r.name, n, r.limit)
		}
	}
}

// TestRecordOfLives: the time before a container began, and after it ended, is no demand. Those that did not run to the
// end are left out, as are those for which most of the record would have to be.
func TestRecordOfLives(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n int, m *flight.Minute) // of api
		kept   string
		length int // in periods
		notes  []string
	}{
		"began early": {func(n int, m *flight.Minute) {
			if n < 3 {
				m.Periods = 0
			}
		}, "api web", 3600, []string{"7m0s from 2026-11-25 03:15:00 UTC on are taken"}},
		"began late": {func(n int, m *flight.Minute) {
			if n < 8 {
				m.Periods = 0
			}
		}, "web", 5400, []string{"api is left out: its control group /kube/api first ran at 2026-11-25 03:20:00 UTC"}},
		"ended": {func(n int, m *flight.Minute) {
			if n > 4 {
				m.Periods = 0
			}
		}, "web", 5400, []string{"api is left out: its control group /kube/api has not run since 2026-11-25 03:17:00"}},
		"restarted": {func(n int, m *flight.Minute) {
			if n > 1 {
				m.Cgroup = "/kube/again"
			}
		}, "api web", 4200, []string{"api was restarted", "api is left out: its control group /kube/api has not",
			"8m0s from 2026-11-25 03:14:00 UTC on are taken"}},
	} {
		d, err := Load(recordOf(t, func(n int, m *flight.Minute) {
			if m.Container == "api" {
				c.change(n, m)
			}
		}), 4, 0)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, r := range d.list {
			kept = append(kept, r.name)
			// 10 ms a period of api, and 20 of web
			if want, n := map[string]float64{"api": 0.025, "web": 0.05}[r.name], r.demand.Len(); n < c.length-5 ||
				n > c.length+5 || math.Abs(r.demand.Mean()/want-1) > 0.01 {
				t.Errorf("%s: %s: %d periods of %v on average, want %d of %v", name, r.name, n, r.demand.Mean(),
					c.length, want)
			}
		}
		notes := strings.Join(d.notes, "\n")
		for _, want := range c.notes {
			if !strings.Contains(notes, "the record: "+want) {
				t.Errorf("%s: %q, want %s", name, notes, want)
			}
		}
		if got := strings.Join(kept, " "); got != c.kept || len(d.notes) != len(c.notes) {
			t.Errorf("%s: %s, %q; want %s", name, got, notes, c.kept)
		}
	}
}

// TestIdleRecord: a record in which nothing ran is refused.
func TestIdleRecord(t *testing.T) {
	files := recordOf(t, func(_ int, m *flight.Minute) { m.Used, m.UsedUs = []float32{0}, 0 })
	if _, err := Load(files, 4, 0); !errors.Is(err, errIdle) {
		t.Error(err)
	}
}

// TestRecordOfOtherPeriods: a container whose period changed is left out, and one whose period is not that of most.
func TestRecordOfOtherPeriods(t *testing.T) {
	for want, from := range map[string]int{
		"the record: api has periods of 10ms, most others of 100ms; it is left out":            0,
		"the record: the period of \"api\" changed from 100ms to 10ms at 2026-11-25 03:16 UTC": 4,
	} {
		d, err := Load(recordOf(t, func(n int, m *flight.Minute) {
			if n >= from && m.Container == "api" {
				m.PeriodUs = 10_000
			}
		}), 4, 0)
		if err != nil || len(d.list) != 1 || d.list[0].name != "web" || len(d.notes) != 1 ||
			!strings.HasPrefix(d.notes[0], want) {
			t.Errorf("%+v, %v, want %s", d, err, want)
		}
	}
}

// TestRecordThatIsTooLarge: a record of more periods than are taken is refused before they are laid out in memory.
func TestRecordThatIsTooLarge(t *testing.T) {
	files := recordOf(t, func(n int, m *flight.Minute) {
		m.PeriodUs = 1000
		if n == 9 { // after 3 h
			m.Start += 171 * time.Minute.Milliseconds()
		}
	})
	_, err := Load(files, 4, 0)
	var said interface{ Hint() string }
	if err == nil ||
		!strings.Contains(err.Error(), "2 control groups in 3h1m0s have more periods than the 16 million") ||
		!errors.As(err, &said) || !strings.Contains(said.Hint(), "of 2h19m0s at most") {
		t.Errorf("%v, hint %v", err, said)
	}
}
