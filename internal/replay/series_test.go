package replay

import (
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
