package scx

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/probe"
)

// A scheduler that enforces limits itself is the only source of throttle events. It reports them in the format of
// package probe, which reports those of the fair class: the same records, the same totals.

// Changes are the begins and ends of throttles since the last call. The slice is used again by the next one.
func (s *Scheduler) Changes() ([]probe.Event, error) {
	list, err := s.records.Poll()
	if err != nil {
		err = fmt.Errorf("scheduler: %w", err)
	}
	return list, err
}

// Throttles are those of a group since the scheduler was loaded, whether their records were lost or not. What it ran in
// its periods counts while it has a limit.
func (s *Scheduler) Throttles(group uint64) (probe.Totals, error) {
	var g kernelGroup
	if err := s.parts.Groups.Lookup(group, &g); errors.Is(err, ebpf.ErrKeyNotExist) {
		return probe.Totals{}, fmt.Errorf("scheduler: group %d: %w", group, ErrNoGroup)
	} else if err != nil {
		return probe.Totals{}, fmt.Errorf("scheduler: read group %d: %w", group, err)
	}
	t := probe.Totals{Begins: int64(g.Begins), Ends: int64(g.Begins) - int64(g.Standing), Dropped: int64(g.Unreported),
		Wall: time.Duration(g.Wall),
		Used: time.Duration(g.Last), Peak: time.Duration(g.Peak), Sum: time.Duration(g.Used)}
	if g.Standing == 1 {
		t.Since = time.Duration(g.Since)
	}
	if g.Periods > 0 {
		t.PeriodEnd = time.Duration(g.Expires - g.Now.Period)
	}
	for i, n := range g.Lengths {
		t.Lengths[i] = int64(n)
	}
	return t, nil
}
