package host

import (
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
)

// Events turns the events of the programs in the kernel into those of the agent.
type Events struct {
	*probe.Probe
	// throttled time of a group's requests so far; nil: requests are not measured
	Requests func(group uint64) *time.Duration
	events   []bandwidth.Throttle
}

// Read waits for throttles that begin, or until an instant. The slice is used again.
func (e *Events) Read(until time.Time) ([]bandwidth.Throttle, error) {
	for {
		events, err := e.Probe.Read(until)
		if err != nil {
			return nil, err
		}
		e.events = e.events[:0]
		at := ourTime()
		for _, event := range events {
			if event.Kind != probe.End {
				e.events = append(e.events, throttle(event, at))
			}
		}
		if len(e.events) > 0 || len(events) == 0 {
			return e.events, nil
		}
	}
}

// ourTime turns the kernel's time into ours, and never into an earlier one: what began after a write must not seem to
// have been ended by it (policy.State.AnswerThrottles).
func ourTime() func(time.Duration) time.Time {
	monotonic, now := probe.Monotonic(), time.Now()
	return func(d time.Duration) time.Time { return now.Add(d - monotonic) }
}

func throttle(event probe.Event, at func(time.Duration) time.Time) bandwidth.Throttle {
	f := event.Facts
	t := bandwidth.Throttle{Inode: event.Group, At: at(event.At), Snap: f.Snap, Ahead: event.Kind == probe.Dry,
		UseKnown: f.Used >= 0, Used: f.Used, Left: f.Runtime +
			f.OnCPUs, Bandwidth: cpu.Bandwidth{Quota: f.Quota, Period: f.Period, Burst: f.Burst}}
	if f.Expires > 0 {
		t.Expires = at(f.Expires)
	}
	if t.Ahead {
		t.Dry = at(event.Since)
	}
	return t
}

// Uses reads the periods of a group by their use.
func (e *Events) Uses(group uint64) []int64 {
	if t, ok := e.Probe.Totals(group); ok {
		return slices.Clone(t.Uses[:]) // or all of t were kept
	}
	return nil
}

// Totals reads the programs' counters of a group.
func (e *Events) Totals(group uint64) (report.Throttles, bool) {
	t, ok := e.Probe.Totals(group)
	all := loader.Throttles(t)
	if e.Requests != nil {
		all.Requests = e.Requests(group)
	}
	return all, ok
}
