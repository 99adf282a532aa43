package main

import (
	"errors"
	"io"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/probe"
	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
)

// The ring has room for all events of a run: they are read after it, so that reading does not disturb the measurement.
const (
	ringSize = 8 << 20
	patience = 3 * time.Second // for an event that comes after the run
)

// listen subscribes to the throttles of the groups.
func listen(groups []uint64) (*probe.Probe, error) {
	p, err := probe.Open(probe.Options{Ring: ringSize, Use: true})
	if err != nil {
		return nil, experiment.WithHint(err, probe.Explain(err))
	}
	if err := p.Watch(groups); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// collect reads the events up to an instant that has passed: until one is later, or none comes.
func collect(p *probe.Probe, until time.Duration) ([]probe.Event, error) {
	watchdog := time.AfterFunc(patience, func() { _ = p.Close() }) // it is closed again, and returns errors then
	defer watchdog.Stop()
	var all []probe.Event
	for {
		batch, err := p.Read(time.Time{})
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, batch...)
		if batch[len(batch)-1].At > until {
			return all, nil
		}
	}
}

// lengths are those of the throttles that ended in a window, of all and of those that an agent may end, in order of length.
func lengths(events []probe.Event, quota, from, to time.Duration) (all, endable []time.Duration) {
	type one struct {
		group uint64
		since time.Duration
	}
	capped := map[one]bool{}
	for _, e := range events {
		at := one{e.Group, e.Since}
		switch {
		case e.Kind == probe.Begin:
			capped[at] = atCap(e.Facts, quota)
		case e.Kind == probe.End && e.At >= from && e.At < to:
			all = append(all, e.At-e.Since)
			if !capped[at] {
				endable = append(endable, e.At-e.Since)
			}
		}
	}
	slices.Sort(all)
	slices.Sort(endable)
	return all, endable
}

// atCap says of a throttle's begin, in a group of a limit of so much a period, that a refill would exceed the
// cap: the use in the period, with the runtime in pool and on CPUs, is too near to what the strategy allows. Where that
// is not known, the throttle counts as one that may be ended.
func atCap(f probe.Facts, limit time.Duration) bool {
	most := cpu.Percent(limit, strategy.Default().CFSQuotaBurstPercent)
	return f.Used >= 0 && f.Used+f.Runtime+f.Held+f.Quota > most
}

// lost is the wall time that throttles cost.
type lost struct {
	Throttles int           `json:"throttles"`
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
	Mean      time.Duration `json:"mean_ns"`
	Total     time.Duration `json:"total_ns"` // of all groups
}

// sum expects lengths in order.
func sum(sorted []time.Duration) lost {
	l := lost{Throttles: len(sorted), Median: quantile(sorted, 0.5), P99: quantile(sorted, 0.99)}
	for _, d := range sorted {
		l.Total += d
	}
	if len(sorted) > 0 {
		l.Mean = l.Total / time.Duration(len(sorted))
	}
	return l
}

// measures are the names of what a figure can be made of.
func measures() []string { return []string{"median", "p99", "mean"} }

func (l lost) of(measure string) time.Duration {
	switch measure {
	case "median":
		return l.Median
	case "p99":
		return l.P99
	}
	return l.Mean
}

// quantile is the least value that a share q of all does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	for i, d := range sorted {
		if float64(i+1) >= q*float64(len(sorted)) {
			return d
		}
	}
	return 0
}

// tally is what the kernel itself adds up of the groups, whether events are lost or not.
type tally struct {
	Ends    int64         `json:"throttles"`
	Wall    time.Duration `json:"total_ns"`
	Dropped int64         `json:"dropped"`
}

func count(p *probe.Probe, groups []uint64) (t tally) {
	for _, id := range groups {
		g, _ := p.Totals(id) // all are watched
		t.Ends += g.Ends
		t.Wall += g.Wall
		t.Dropped += g.Dropped
	}
	return t
}

func (t tally) since(first tally) tally {
	return tally{t.Ends - first.Ends, t.Wall - first.Wall, t.Dropped - first.Dropped}
}
