package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/flight"
)

// Series is what a container did, on a grid of periods. Place i ends at Begin + (i+1) periods.
type Series struct {
	Cgroup, Name, Namespace string
	Period                  time.Duration
	Begin                   time.Time
	Places                  []Place
	Limits                  []Limit // in the order of time, at least one; the first is in force from the begin
	Raised                  bool    // a quota above the limit was in force
}

// Place is one period.
type Place struct {
	Used    time.Duration
	Lost    time.Duration // wall time throttled
	Refills int32
	Unknown bool // nothing was recorded
}

// Limit is a limit from an instant on. The zero quota is none.
type Limit struct {
	From  time.Time
	Quota time.Duration
}

// LimitAt is the limit that was in force until an instant.
func (s *Series) LimitAt(t time.Time) time.Duration {
	quota := s.Limits[0].Quota
	for _, l := range s.Limits {
		if l.From.Before(t) {
			quota = l.Quota
		}
	}
	return quota
}

// at is the place whose end is nearest to an instant.
func (s *Series) at(end time.Time) int {
	return int(math.Round(float64(end.Sub(s.Begin))/float64(s.Period))) - 1
}

// FromRecord makes series of rows in the order in which they were written, of a machine of so many CPUs. covered are
// the times that were recorded. A group whose period changed has no series: that is an error where it is among those
// that are asked for, or nothing else is there.
func FromRecord(rows []flight.Minute, covered flight.Spans, cpus float64, from, to time.Time,
	asked map[string]bool) (list []*Series, warnings []string, err error) {
	groups := map[string][]*flight.Minute{}
	for i := range rows {
		m := &rows[i]
		groups[m.Cgroup] = append(groups[m.Cgroup], m)
	}
	var changed error
	for _, path := range sorted(groups) {
		s, notes, err := build(groups[path], covered, cpus, from, to)
		switch {
		case err != nil && asked[path]:
			return nil, nil, err
		case err != nil:
			changed = err
			notes = append(notes, err.Error()+"; it is left out")
		}
		if warnings = append(warnings, notes...); s != nil {
			list = append(list, s)
		}
	}
	if len(list) == 0 && changed != nil {
		return nil, nil, changed
	}
	slices.SortStableFunc(list, func(a, b *Series) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	return list, append(warnings, restarted(list)...), nil
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// build makes the series of one group; nil where no place is in the time.
func build(rows []*flight.Minute, covered flight.Spans, cpus float64, from, to time.Time) (*Series, []string, error) {
	last := rows[len(rows)-1]
	name := last.Name()
	rows, notes := once(rows, name, from.Location())
	period := time.Duration(rows[0].PeriodUs) * time.Microsecond
	for _, m := range rows {
		if p := time.Duration(m.PeriodUs) * time.Microsecond; p != period {
			return nil, nil, fmt.Errorf("the period of %.100q changed from %s to %s at %s", name, period, p,
				time.UnixMilli(m.Start).In(from.Location()).Format("2006-01-02 15:04 MST"))
		}
		if other := m.Name(); other != name {
			notes = append(notes, fmt.Sprintf("%s was called %s before: it is one control group", name, other))
			name = other
		}
	}
	name = last.Name()
	end := time.UnixMilli(rows[0].Start + int64(rows[0].First)) // of a place: gives the phase
	begin := end.Add(-((end.Sub(from) + period - 1) / period) * period)
	n := int(to.Sub(begin) / period)
	if n < 1 {
		return nil, notes, nil
	}
	s := &Series{Cgroup: last.Cgroup, Name: name, Namespace: last.Namespace, Period: period, Begin: begin,
		Places: make([]Place, n)}
	s.gaps(covered)
	for _, m := range rows {
		s.add(m)
	}
	s.settle(cpus)
	s.limits(rows)
	return s, notes, nil
}

// once leaves out rows of minutes that are there twice, since the clock was set back. The rows of two agents, one after
// another, have each a part of their minute.
func once(rows []*flight.Minute, name string, zone *time.Location) (kept []*flight.Minute, notes []string) {
	until := map[int64]time.Time{} // what of each minute is there
	for _, m := range rows {
		first, last := ends(m)
		if first.Before(until[m.Start]) {
			notes = append(notes, fmt.Sprintf("the minute %s of %s is there twice, since the clock was set back; the "+
				"first is replayed", time.UnixMilli(m.Start).In(zone).Format("15:04 MST"), name))
			continue
		}
		until[m.Start] = last
		kept = append(kept, m)
	}
	slices.SortStableFunc(kept, func(a, b *flight.Minute) int { return cmp.Compare(a.Start, b.Start) })
	return kept, notes
}

// ends are those of the first period of a row that used CPU time, and of its last one.
func ends(m *flight.Minute) (first, last time.Time) {
	at := func(place int) time.Time {
		ms := time.UnixMilli(m.Start + int64(m.First))
		return ms.Add(time.Duration(place) * time.Duration(m.PeriodUs) * time.Microsecond)
	}
	used := max(0, slices.IndexFunc(m.Used, func(u float32) bool { return u > 0 }))
	return at(used), at(len(m.Used) - 1)
}

// gaps marks the places of which a part was not recorded.
func (s *Series) gaps(covered flight.Spans) {
	for i := range s.Places {
		end := s.Begin.Add(time.Duration(i+1) * s.Period).UnixMilli()
		for len(covered) > 0 && covered[0].To <= end { // where one ends at once is in the next minute
			covered = covered[1:]
		}
		s.Places[i].Unknown = len(covered) == 0 || covered[0].From > end-s.Period.Milliseconds()
	}
}

// add puts a minute on the grid. Its lists are rounded, its sums are exact.
func (s *Series) add(m *flight.Minute) {
	used, lost := 0.0, 0.0
	for _, u := range m.Used {
		used += float64(u) * 10
	}
	for _, t := range m.ThrottledMs {
		lost += float64(t) * 1000
	}
	first := s.at(time.UnixMilli(m.Start + int64(m.First)))
	for i, u := range m.Used {
		at := first + i
		if at < 0 || at >= len(s.Places) {
			continue
		}
		p := &s.Places[at]
		p.Used += share(float64(u)*10, used, m.UsedUs)
		if i < len(m.ThrottledMs) {
			p.Lost += share(float64(m.ThrottledMs[i])*1000, lost, m.ThrottledUs)
		}
		p.Unknown = p.Unknown && u == 0
	}
	for _, i := range m.RefillAt {
		if at := first + int(i); at >= 0 && at < len(s.Places) {
			s.Places[at].Refills++
		}
	}
}

// settle divides the lost time that a late timer reports at the last of several periods: no place has lost more than a
// period, and what it used it did in the rest, on all CPUs at most. Where a place could not have done that, it shares
// what both lost with the one before, as if as many threads had run in both. cpus are those of the machine that was
// recorded.
func (s *Series) settle(cpus float64) {
	for at := len(s.Places) - 1; at > 0; at-- {
		p, before := &s.Places[at], &s.Places[at-1]
		if before.Unknown {
			continue
		}
		if over := p.Lost - s.Period; over > 0 {
			p.Lost -= over
			before.Lost += over
		}
		both, lost := (p.Used + before.Used).Seconds(), p.Lost+before.Lost
		if p.Used.Seconds() <= cpus*(s.Period-p.Lost+blink).Seconds() || lost >= 2*s.Period {
			continue
		}
		run := time.Duration(float64(2*s.Period-lost) * p.Used.Seconds() / both)
		p.Lost = min(lost, max(0, s.Period-run))
		before.Lost = lost - p.Lost
	}
}

// share is a part of an exact sum, in microseconds, as large as a part of the rounded sum.
func share(part, sum float64, exact int64) time.Duration {
	if sum <= 0 {
		return 0
	}
	return time.Duration(part / sum * float64(exact) * float64(time.Microsecond))
}

// limits notes the limits, and whether a larger quota was in force. A row has the limit of its end: where the one
// before was another, the quota shows since when. Where the owner's limit is not known, the smallest quota that was in
// force is taken for it.
func (s *Series) limits(rows []*flight.Minute) {
	least := int64(0)
	for _, m := range rows {
		for _, q := range m.QuotaUs {
			if least == 0 || q > 0 && q < least {
				least = q
			}
		}
	}
	for _, m := range rows {
		us := m.LimitUs
		if us <= 0 {
			us = least
		}
		at := inForce(m.QuotaUs, us)
		if len(s.Limits) == 0 { // a quota below the limit was under another one, or of offline work: it was in force
			first := slices.Min(append(m.QuotaUs[:at:at], us))
			s.Limits = append(s.Limits, Limit{time.UnixMilli(m.Start), micro(first)})
		}
		was := s.Limits[len(s.Limits)-1].Quota
		if was == micro(us) {
			at = 0
		} else {
			s.Limits = append(s.Limits, Limit{s.begun(m, at), micro(us)})
		}
		for i, q := range m.QuotaUs {
			s.Raised = s.Raised || i < at && micro(q) > was || i >= at && q > us
		}
	}
}

func micro(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// inForce is the first of quotas that shows a limit which is in force at their end; their number where none does.
func inForce(quotas []int64, limit int64) int {
	at := len(quotas)
	for i, q := range quotas {
		switch {
		case q < limit:
			at = len(quotas)
		case q == limit:
			at = min(at, i)
		}
	}
	return at
}

// begun is when a quota of a row came into force: in the middle of its first place. After the last one it is the end
// of the minute.
func (s *Series) begun(m *flight.Minute, quota int) time.Time {
	if quota == len(m.QuotaAt) {
		return time.UnixMilli(m.Start).Add(time.Minute)
	}
	return time.UnixMilli(m.Start + int64(m.First)).Add(time.Duration(m.QuotaAt[quota])*s.Period - s.Period/2)
}

// restarted says which names more than one group has had.
func restarted(list []*Series) (notes []string) {
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.Name == b.Name {
			notes = append(notes, fmt.Sprintf("%s was restarted: it had the control groups %s and %s, each of which "+
				"is taken by itself", a.Name, a.Cgroup, b.Cgroup))
		}
	}
	return notes
}
