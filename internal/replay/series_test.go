package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/flight"
)

func wholeMinute(start int64) flight.Spans { return flight.Spans{{From: start, To: start + 60_000}} }

// TestTwoAgentsInAMinute: where one agent stops in the middle of a minute and the next one begins later in it, both
// parts are replayed, and what is between them is a gap.
func TestTwoAgentsInAMinute(t *testing.T) {
	var rows []flight.Minute
	var covered flight.Spans
	for _, part := range [][2]time.Duration{{0, 20 * time.Second}, {25 * time.Second, 40 * time.Second}} {
		from, to := t0().Add(part[0]), t0().Add(part[1])
		b := flight.NewBuilder(from)
		for at := from.Add(130 * ms); at.Before(to); at = at.Add(100 * ms) {
			b.Add([]flight.Period{{Cgroup: "/a", End: at.UnixMilli(), Used: 20_000, Quota: 50_000, Count: 1}})
			b.Close(at, false)
		}
		batch, _ := b.Close(to, true)
		rows, covered = append(rows, batch.Rows...), flight.Union(covered, batch.Covered)
	}
	list, notes, err := FromRecord(rows, covered, 2, t0(), t0().Add(time.Minute), nil)
	if err != nil || len(list) != 1 || len(notes) > 0 {
		t.Fatal(list, notes, err)
	}
	s := list[0]
	used, unknown := 0, 0
	for i, p := range s.Places {
		switch end := s.Begin.Add(time.Duration(i+1) * s.Period).Sub(t0()); {
		case p.Unknown != (end < 100*ms || end > 20*time.Second && end < 25100*ms || end > 40*time.Second):
			t.Errorf("the place that ends after %v: unknown %v", end, p.Unknown)
		case p.Unknown:
			unknown++
		case p.Used > 0:
			used++
		}
	}
	if used != 199+149 || unknown == 0 {
		t.Errorf("%d places used CPU time, %d are not known", used, unknown)
	}
}

// TestRefillsOfAPartOfAMinute: those of the rest of the minute are not of the time.
func TestRefillsOfAPartOfAMinute(t *testing.T) {
	m := flight.Minute{Cgroup: "/a", Start: t0().UnixMilli(), First: 30, PeriodUs: 100_000, LimitUs: 50_000,
		UsedUs: 600_000, Periods: 600, Used: slices.Repeat([]float32{100}, 600), Refills: 3,
		RefillAt: []int32{0, 299, 599}, QuotaAt: []int32{0}, QuotaUs: []int64{50_000}}
	o := minute()
	o.From = t0().Add(30 * time.Second)
	list, _, err := FromRecord([]flight.Minute{m}, wholeMinute(m.Start), 4, t0(), t0().Add(2*time.Minute), nil)
	if err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	if c := compare(t, list[0], o); c.Was.Refills != exactly(1) || c.Model != nil {
		t.Errorf("%v refills, want that of the last place", c.Was.Refills.Value.Nanoseconds())
	}
}

// TestLimitChangedWithinAMinute: a row has the limit of its end. The quota shows since when it is in force, and whether
// one was raised.
func TestLimitChangedWithinAMinute(t *testing.T) {
	type row struct {
		limit  int64 // ms, as the quotas
		at     []int32
		quotas []int64
	}
	for _, c := range []struct {
		name   string
		rows   []row
		want   string // each limit, and since when
		raised bool
	}{
		{"raised by its owner", []row{{50, []int32{0}, []int64{50}}, {100, []int32{0, 300}, []int64{50, 100}}},
			"50ms 0s, 100ms 1m29.95s", false},
		{"lowered", []row{{100, []int32{0}, []int64{100}}, {50, []int32{0, 300}, []int64{100, 50}}},
			"100ms 0s, 50ms 1m29.95s", false},
		{"raised by the agent to the next limit before", []row{{50, []int32{0}, []int64{50}},
			{100, []int32{0, 100, 101, 300, 400, 401}, []int64{50, 100, 50, 100, 150, 100}}},
			"50ms 0s, 100ms 1m29.95s", true},
		{"raised by the agent after", []row{{50, []int32{0}, []int64{50}},
			{100, []int32{0, 300, 400}, []int64{50, 100, 150}}}, "50ms 0s, 100ms 1m29.95s", true},
		{"known before the quota shows it", []row{{50, []int32{0}, []int64{50}}, {100, []int32{0}, []int64{50}},
			{100, []int32{0}, []int64{100}}}, "50ms 0s, 100ms 2m0s", false},
		{"in the first row", []row{{100, []int32{0, 300}, []int64{50, 100}}}, "50ms 0s, 100ms 29.95s", false},
		{"only the agent's", []row{{50, []int32{0, 300, 301}, []int64{50, 75, 50}}}, "50ms 0s", true},
	} {
		s, minutes := &Series{Period: 100 * ms}, []*flight.Minute(nil)
		for i, r := range c.rows {
			m := &flight.Minute{Start: t0().UnixMilli() + int64(i)*60_000, LimitUs: r.limit * 1000, QuotaAt: r.at}
			for _, q := range r.quotas {
				m.QuotaUs = append(m.QuotaUs, q*1000)
			}
			minutes = append(minutes, m)
		}
		s.limits(minutes)
		var got []string
		for _, l := range s.Limits {
			got = append(got, fmt.Sprint(l.Quota, " ", l.From.Sub(t0())))
		}
		if text := strings.Join(got, ", "); text != c.want || s.Raised != c.raised {
			t.Errorf("%s: %s, raised %v; want %s, %v", c.name, text, s.Raised, c.want, c.raised)
		}
	}
}
