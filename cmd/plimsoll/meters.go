package main

import (
	"log/slog"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/host"
)

// openMeters makes those of --waits and --requests.
func (f *runFlags) openMeters(tree *cgroup.Tree, found agent.Discoverer, throttles host.Throttles,
	log *slog.Logger) meter.Beside {
	var m meter.Beside
	if f.waits {
		m.Waits = meter.NewWaits(tree, found, log)
	}
	if !f.requests {
		return m
	}
	if k := throttles.Events; k != nil {
		m.Requests = meter.NewRequestTimes(found, k.Probe, log)
		k.Requests = m.Requests.Throttled // for the receipts
	} else {
		m.Requests = meter.NewRequestTimes(found, nil, log)
	}
	return m
}

// watchAll has the groups watched that no policy changes: while somebody reads their periods, and with --requests
// always, for the throttled time of their requests.
func (f *runFlags) watchAll(a *agent.Agent) func(all bool) {
	if !f.requests {
		return a.WatchAll
	}
	a.WatchAll(true)
	return func(bool) {}
}
