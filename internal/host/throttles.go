package host

import (
	"log/slog"

	"plimsoll/internal/hint"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
)

// Throttles is the source of throttle events, or why there is none.
type Throttles struct {
	Events  *Events // nil: none
	Why     string
	Missing []report.MissingPart
}

// Subscribe loads the programs. Where the kernel refuses them, the agent polls.
func Subscribe(o probe.Options, log *slog.Logger) Throttles {
	p, err := probe.Open(o)
	if err != nil {
		why := explained(err)
		log.Warn("no throttle events from eBPF: polling; the starts of containers are not covered", "error", why)
		return Throttles{Why: why}
	}
	s := Throttles{Events: &Events{Probe: p}}
	for _, m := range p.Missing() {
		s.Missing = append(s.Missing, report.MissingPart{Part: m.Part, Lost: m.Lost, Why: explained(m.Err)})
		log.Warn("some parts of the throttle events are missing", "missing", m.Part, "lost", m.Lost, "error",
			explained(m.Err))
	}
	return s
}

// explained is an error of the probe in one line, with what can be done about it.
func explained(err error) string { return hint.Line(hint.With(err, probe.Explain(err))) }

// WhyNoPeriods says why the kernel records no periods: the missing part before the whole.
func (s Throttles) WhyNoPeriods() string {
	for _, m := range s.Missing {
		if m.Part == probe.PartPeriods {
			return m.Why
		}
	}
	return s.Why
}
