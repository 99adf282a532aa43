package capacity

import (
	"errors"
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
			change(n, &m)
			b.Rows = append(b.Rows, m)
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
