package capacity

import (
	"errors"
	"fmt"
	"math"
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
// had: it is taken for this one, unless cpus says otherwise. Gaps are left out.
func recordTrace(files []string, cpus float64) (t trace.Trace, err error) {
	if cpus <= 0 {
		online, err := sysfs.NewHost("/").Online()
		if err != nil {
			return t, hint.With(err, "say how many CPUs the node has: --cpus")
		}
		cpus = float64(len(online))
	}
	var rows []flight.Minute
	var covered flight.Spans
	for _, file := range files {
		b, err := disk.ReadAs(file)
		if err != nil {
			return t, err
		}
		rows, covered = append(rows, b.Rows...), flight.Union(covered, b.Covered)
	}
	if len(rows) == 0 {
		return t, errors.New("no container used CPU time under a limit in this record")
	}
	first, last := rows[0].Start, rows[0].Start
	for i := range rows {
		first, last = min(first, rows[i].Start), max(last, rows[i].Start)
	}
	list, _, err := replay.FromRecord(rows, covered, cpus, time.UnixMilli(first),
		time.UnixMilli(last).Add(time.Minute), nil)
	if err != nil {
		return t, err
	}
	return traceOf(list, cpus)
}

// traceOf makes a recording of series, as `plimsoll record` makes one; cpus are those of their machine.
func traceOf(list []*replay.Series, cpus float64) (trace.Trace, error) {
	t := trace.Trace{Period: list[0].Period, CPUs: cpus, Started: list[0].Begin, Aligned: true}
	n := len(list[0].Places)
	for _, s := range list {
		if s.Period != t.Period {
			return t, hint.With(fmt.Errorf("%s has periods of %s, %s of %s", s.Name, s.Period, list[0].Name, t.Period),
				"record containers with limits of one period")
		}
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
