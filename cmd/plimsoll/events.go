package main

import (
	"fmt"
	"log/slog"
	"strings"

	"plimsoll/internal/agent"
	"plimsoll/internal/hint"
	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
)

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
	h := throttleSource{events: &host.Events{Probe: p}}
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
