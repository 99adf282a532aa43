package main

import (
	"log/slog"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/host"
	"plimsoll/internal/probe/requests"
	"plimsoll/internal/report"
)

// meters measure beside the agent; nil where that was not asked for.
type meters struct {
	waits    *meter.Waits
	requests *meter.RequestTimes
}

// openMeters makes those of --waits and --requests.
func (f *runFlags) openMeters(tree *cgroup.Tree, found agent.Discoverer, throttles throttleSource, log *slog.Logger) meters {
	var m meters
	if f.waits {
		m.waits = meter.NewWaits(tree, found, log)
	}
	if f.requests {
		m.requests = meter.NewRequestTimes(found, throttles.clock(), log)
		if k, ok := throttles.events.(*host.Events); ok {
			k.Requests = m.requests.Throttled // for the receipts
		}
	}
	return m
}

// watchAll has the groups watched that no policy changes: while somebody reads their periods, and with --requests always,
// for the throttled time of their requests.
func (f *runFlags) watchAll(a *agent.Agent) func(all bool) {
	if !f.requests {
		return a.WatchAll
	}
	a.WatchAll(true)
	return func(bool) {}
}

// clock is that of the groups' throttled time; nil where throttles are polled for.
func (s throttleSource) clock() requests.Clock {
	if k, ok := s.events.(*host.Events); ok {
		return k.Probe
	}
	return nil
}

func (m meters) services() []service {
	return []service{{"waits", m.waits.Run}, {"requests", m.requests.Run}}
}

// Report lays what was measured over a status.
func (m meters) Report(s *report.Status) {
	m.waits.Report(s)
	m.requests.Report(s)
}
