package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/hint"
	"plimsoll/internal/replay"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/trace"
)

// parquet are the files of the flight recorder among arguments, and the others.
func parquet(files []string) (record, others []string) {
	for _, file := range files {
		if strings.HasSuffix(file, ".parquet") {
			record = append(record, file)
		} else {
			others = append(others, file)
		}
	}
	return record, others
}

// recordTrace reads files of the flight recorder as one recording. The record does not say how many CPUs its machine
// had: it is taken for this one, unless cpus says otherwise. Gaps are left out. notes say what else is.
func recordTrace(files []string, cpus float64) (t trace.Trace, notes []string, err error) {
	if cpus <= 0 {
		online, err := sysfs.NewHost("/").Online()
		if err != nil {
			return t, nil, hint.With(err, "say how many CPUs the node has: --cpus")
		}
		cpus = float64(len(online))
	}
	var rows []flight.Minute
	var covered flight.Spans
	var e extent
	for _, file := range files {
		b, err := disk.ReadAs(file)
		if err != nil {
			return t, nil, err
		}
		rows, covered = append(rows, b.Rows...), flight.Union(covered, b.Covered)
		if err := e.add(b.Rows); err != nil {
			return t, nil, err
		}
	}
	if len(rows) == 0 {
		return t, nil, errIdle
	}
	list, notes, err := replay.FromRecord(rows, covered, cpus, time.UnixMilli(e.first), time.UnixMilli(e.end), nil)
	if err != nil {
		return t, nil, hint.With(err, "name the files from before it, or those from after it")
	}
	list, others := ofOnePeriod(list)
	list, young := sameTime(list)
	if len(list) == 0 {
		return t, nil, errIdle
	}
	t, err = traceOf(list, cpus)
	return t, slices.Concat(notes, others, young), err
}

var errIdle = errors.New("no container used CPU time under a limit in this record")

// maxPlaces bounds the periods of all containers together, each of which takes 50 bytes or so: 46 hours of 10
// containers, or 2 of 230, with periods of 100 ms. A container has all periods of the time, also those before it began.
const maxPlaces = 1 << 24

// extent is the time of rows, in Unix ms, and the containers in it.
type extent struct {
	first, end int64
	groups     map[string]bool
	rate       float64 // periods of all groups in a ms
}

// add adds rows, and fails where a recording of all would be too large.
func (e *extent) add(rows []flight.Minute) error {
	for i := range rows {
		m := &rows[i]
		if e.groups == nil {
			e.first, e.end, e.groups = m.Start, m.Start, map[string]bool{}
		}
		e.first, e.end = min(e.first, m.Start), max(e.end, m.Start+time.Minute.Milliseconds())
		if !e.groups[m.Cgroup] {
			e.groups[m.Cgroup] = true
			e.rate += 1000 / float64(m.PeriodUs)
		}
	}
	if float64(e.end-e.first)*e.rate <= maxPlaces {
		return nil
	}
	length := func(ms float64) time.Duration { return time.Duration(ms) * time.Millisecond }
	return hint.With(fmt.Errorf("%d control groups in %s have more periods than the %d million that are taken",
		len(e.groups), length(float64(e.end-e.first)), maxPlaces/1_000_000),
		fmt.Sprintf("name fewer files, of %s at most: their names have the begin and the end",
			length(maxPlaces/e.rate).Truncate(time.Minute)))
}

// ofOnePeriod leaves out the containers whose periods are not as long as those of most, and says which.
func ofOnePeriod(list []*replay.Series) (same []*replay.Series, notes []string) {
	count, most := map[time.Duration]int{}, list[0].Period
	for _, s := range list {
		count[s.Period]++
		if n, of := count[s.Period], count[most]; n > of || n == of && s.Period > most {
			most = s.Period
		}
	}
	for _, s := range list {
		if s.Period == most {
			same = append(same, s)
			continue
		}
		notes = append(notes, fmt.Sprintf("%s has periods of %s, most others of %s; it is left out", s.Name, s.Period,
			most))
	}
	return same, notes
}

// life is from the first place of a series that used CPU time to the last one. A record does not tell a container that
// idles from one that does not exist: only between these is a place without CPU time known to be no demand.
type life struct {
	*replay.Series
	first, end int
}

func livesOf(list []*replay.Series) (lives []life) {
	for _, s := range list {
		l := life{Series: s, first: -1}
		for i := range s.Places {
			if s.Places[i].Used > 0 {
				if l.end = i + 1; l.first < 0 {
					l.first = i
				}
			}
		}
		if l.end > 0 {
			lives = append(lives, l)
		}
	}
	return lives
}

// window is the time to take: until the first of the containers ends that ran in the last tenth of the record, for the
// others have ended before. It begins with the one of them with which it has the most time of all containers together.
func window(lives []life) (from, to int) {
	for _, l := range lives {
		to = max(to, l.end)
	}
	tenth := to - to/10
	for _, l := range lives {
		if l.end >= tenth {
			to = min(to, l.end)
		}
	}
	most := 0
	for _, l := range lives {
		sum := 0
		for _, other := range lives {
			if other.first <= l.first && other.end >= to {
				sum += to - l.first
			}
		}
		if sum > most || sum == most && l.first > from {
			from, most = l.first, sum
		}
	}
	return from, to
}

// sameTime cuts the series to the time in which all lived, and leaves out those that did not live in it. notes say
// which, and how long that time is.
func sameTime(list []*replay.Series) (same []*replay.Series, notes []string) {
	lives := livesOf(list)
	from, to := window(lives)
	for _, l := range lives {
		at := func(place int) string {
			begin := l.Begin.Add(time.Duration(place) * l.Period)
			return begin.Round(time.Second).Format("2006-01-02 15:04:05 MST")
		}
		switch {
		case l.end < to:
			notes = append(notes, fmt.Sprintf("%s is left out: its control group %s has not run since %s", l.Name,
				l.Cgroup, at(l.end)))
			continue
		case l.first > from:
			notes = append(notes, fmt.Sprintf("%s is left out: its control group %s first ran at %s; the files from "+
				"then on have it", l.Name, l.Cgroup, at(l.first)))
			continue
		}
		taken := time.Duration(to-from) * l.Period
		if cut := time.Duration(len(l.Places))*l.Period - taken; cut > time.Minute && len(same) == 0 {
			notes = append(notes, fmt.Sprintf("%s from %s on are taken: before and after it not all containers ran",
				taken.Round(time.Second), at(from)))
		}
		l.Begin, l.Places = l.Begin.Add(time.Duration(from)*l.Period), l.Places[from:to]
		same = append(same, l.Series)
	}
	return same, notes
}

// traceOf makes a recording of series of one period, as `plimsoll record` makes one; cpus are those of their machine.
func traceOf(list []*replay.Series, cpus float64) (trace.Trace, error) {
	t := trace.Trace{Period: list[0].Period, CPUs: cpus, Started: list[0].Begin, Aligned: true}
	n := len(list[0].Places)
	for _, s := range list {
		n = min(n, len(s.Places))
	}
	names := map[string]int{}
	for _, s := range list {
		x := trace.Series{Name: s.Name, Limit: math.Inf(1), LimitChanged: len(s.Limits) > 1}
		if names[s.Name]++; names[s.Name] > 1 { // it was restarted
			x.Name = s.Name + " " + s.Cgroup
		}
		for _, l := range s.Limits {
			if l.Quota > 0 {
				x.Limit = min(x.Limit, l.Quota.Seconds()/s.Period.Seconds())
			}
		}
		machine, used := s.Period.Seconds()*cpus, 0.0
		for i, p := range s.Places[:n] {
			if list[0].Places[i].Unknown {
				continue
			}
			x.Used, x.Throttled = append(x.Used, p.Used.Seconds()/machine), append(x.Throttled,
				p.Lost.Seconds()/machine)
			used += p.Used.Seconds()
		}
		if used > 0 {
			t.Series = append(t.Series, x)
		}
	}
	return t, t.Check()
}
