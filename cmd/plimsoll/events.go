package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/cpu"
	"plimsoll/internal/hint"
	"plimsoll/internal/policy"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
)

// kernelEvents turns the events of the programs in the kernel into those of the agent.
type kernelEvents struct {
	*probe.Probe
	events []policy.Throttle
}

// throttleSource is a source of throttle events, or why there is none.
type throttleSource struct {
	events    agent.ThrottleEvents
	why       string
	missing   []report.MissingPart
	uncounted bool // the use of groups in their periods is not counted
}

// subscribe loads the programs. Where the kernel refuses them, the agent polls.
func (f *runFlags) subscribe(log *slog.Logger) throttleSource {
	if f.polls {
		return throttleSource{why: "--poll was given"}
	}
	p, err := probe.Open(probe.Options{Realtime: f.realtime, Use: true, Ahead: f.ahead})
	if err != nil {
		why := explained(err)
		log.Warn("no throttle events from eBPF: polling; the starts of containers are not covered", "error", why)
		return throttleSource{why: why}
	}
	h := throttleSource{events: &kernelEvents{Probe: p}}
	for _, m := range p.Missing() {
		h.missing = append(h.missing, report.MissingPart{Part: m.Part, Lost: m.Lost, Why: explained(m.Err)})
		h.uncounted = h.uncounted || m.Part == probe.PartPeriods
		log.Warn("some parts of the throttle events are missing", "missing", m.Part, "lost", m.Lost, "error", explained(m.Err))
	}
	return h
}

// lacking says what is not reported, and why.
func lacking(missing []probe.Missing) string {
	var list []string
	for _, m := range missing {
		list = append(list, fmt.Sprintf("%s: %s", m.Lost, explained(m.Err)))
	}
	return strings.Join(list, "; ")
}

// explained is an error of the probe in one line, with what can be done about it.
func explained(err error) string { return hint.Line(hint.With(err, probe.Explain(err))) }

// Read waits for throttles that begin, or until an instant. The slice is used again.
func (e *kernelEvents) Read(until time.Time) ([]policy.Throttle, error) {
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

func throttle(event probe.Event, at func(time.Duration) time.Time) policy.Throttle {
	f := event.Facts
	t := policy.Throttle{Inode: event.Group, At: at(event.At), Snap: f.Snap, Ahead: event.Kind == probe.Dry,
		UseKnown: f.Used >= 0, Used: f.Used, Left: f.Runtime + f.OnCPUs, Bandwidth: cpu.Bandwidth{Quota: f.Quota, Period: f.Period, Burst: f.Burst}}
	if f.Expires > 0 {
		t.Expires = at(f.Expires)
	}
	if t.Ahead {
		t.Dry = at(event.Since)
	}
	return t
}

// Totals reads the programs' counters of a group.
func (e *kernelEvents) Totals(group uint64) (report.Throttles, bool) {
	t, ok := e.Probe.Totals(group)
	return loader.Throttles(t), ok
}
