package view

import (
	"cmp"
	"slices"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// Note is what a detail has besides its row and its periods.
type Note struct {
	Unmeasured string  `json:"unmeasured,omitempty"` // why there are no periods
	Waited     *Waited `json:"waited"`               // since the agent knows the container; `null`: not measured
}

// Notes takes the notes of rows from the snapshot that the view is of.
func Notes(s report.Status, rows []Row) []Note {
	at := make(map[string]int, len(s.Containers))
	for i := range s.Containers {
		at[s.Containers[i].Cgroup] = i
	}
	list := make([]Note, len(rows))
	for i, row := range rows {
		n, known := at[row.ID]
		if !known {
			continue
		}
		c := &s.Containers[n]
		list[i].Waited = waited(c.Totals.Waited)
		switch {
		case row.Limit == nil:
			list[i].Unmeasured = "it has no limit, and so no periods"
		case c.Totals.Events == nil:
			list[i].Unmeasured = unmeasured(s)
		}
	}
	return list
}

// NewDetail makes the detail of a row from its recorded periods, oldest first.
func NewDetail(row Row, recording *Recording, note Note, periods []recent.Period) Detail {
	var strip Strip
	d := Detail{Row: row, Recording: recording, Unmeasured: note.Unmeasured, Waited: note.Waited, Histogram: []int64{},
		Advice:  []Alternative{},
		Periods: strip.Add(row, periods)}
	if row.Limit != nil && len(periods) > 0 {
		d.Histogram = histogram(*row.Limit, periods)
		d.Demand, d.Advice = demand(row.Period, periods), advice(row, periods)
	}
	return d
}

// unmeasured says why a container with a limit has no recorded periods.
func unmeasured(s report.Status) string {
	for _, m := range s.Events.Missing {
		if m.Part == "periods" {
			return "its periods are not measured: " + m.Why
		}
	}
	if !s.Events.Subscribed {
		return "its periods are not measured: " + cmp.Or(s.Events.Why, "the kernel sends no events")
	}
	return "its periods are not measured yet: no policy changes it, and the agent watches it only while somebody looks"
}

// Strip makes columns of successive periods of one container. It remembers the tokens in between.
type Strip struct{ bank bank }

// Add makes columns of the next periods.
func (s *Strip) Add(row Row, list []recent.Period) Periods {
	n := len(list)
	p := Periods{Length: row.Period, End: make([]int64, n), Used: make([]int32, n), Quota: make([]int32, n),
		Tokens: make([]int32, n), Throttles: make([]int32, n), Lost: make([]int32, n), Refills: make([]int32, n)}
	for i, one := range list {
		s.bank.add(one, row.Period)
		p.End[i], p.Used[i], p.Quota[i], p.Lost[i] = one.End, one.Used, one.Quota, one.Lost
		p.Throttles[i], p.Refills[i], p.Tokens[i] = int32(one.Throttles), int32(one.Refills), -1
		if saved, known := s.bank.saved(); known {
			p.Tokens[i] = recent.Us(saved)
		}
	}
	return p
}

// classes are those of a histogram: none, and 64 sixteenths of the limit.
const classes = 65

func histogram(limit time.Duration, periods []recent.Period) []int64 {
	counts := make([]int64, classes)
	us := max(1, limit.Microseconds())
	for _, p := range periods {
		counts[min(classes-1, (int64(p.Used)*16+us-1)/us)]++
	}
	return counts
}

// worthNaming is from which part of the waiting on the neighbours are named. A container that waits for its own limit
// waits behind somebody now and then, too.
const worthNaming = 0.05

// waited lays waits out by cause. Neighbours are named for what was waited behind them,
// and for nothing that a limit took.
func waited(w *report.Waited) *Waited {
	if w == nil {
		return nil
	}
	out := &Waited{Wanted: w.Wanted, Received: w.Received, Causes: []WaitedFor{}}
	var all, behind time.Duration
	for _, one := range w.Waits {
		all += one.Time
		if one.Cause == report.CauseNeighbour {
			behind += one.Time
		}
		if one.Time > 0 {
			out.Causes = append(out.Causes, WaitedFor{Cause: one.Cause, Text: one.Cause.Text(), Time: one.Time})
		}
	}
	slices.SortStableFunc(out.Causes, func(a, b WaitedFor) int { return cmp.Compare(b.Time, a.Time) })
	if behind > 0 && behind.Seconds() >= worthNaming*all.Seconds() {
		out.Neighbours = w.Neighbours
	}
	return out
}
