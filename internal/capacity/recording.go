package capacity

import (
	"math"

	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// Describe says what a recording is like, and what to bear in mind about it.
func Describe(file string, t trace.Trace, cost report.RecordingCost, many int) report.Recording {
	r := report.Recording{Schema: report.RecordingSchema, File: file, Periods: t.Len(), Period: t.Period, CPUs: t.CPUs,
		Aligned: t.Aligned,
		Late:    t.Late, Cost: cost, Many: many, Warnings: append([]string{}, t.Warnings()...)}
	for _, s := range t.Series {
		f := s.Figures()
		c := report.Recorded{Name: s.Name, Mean: f.Mean * t.CPUs, Deviation: math.Sqrt(f.Variance) * t.CPUs,
			Variance: f.Variance,
			P95:      f.P95 * t.CPUs, P99: f.P99 * t.CPUs, Max: f.Max * t.CPUs, Share: f.Mean, Many: f.Mean * float64(
				many), Throttled: f.Throttled}
		if s.Limited() {
			c.Limit = &s.Limit
		}
		if u, err := demandOf(s); err == nil && u.Throttled > 0 {
			demand := u.Likely.Mean() * t.CPUs
			c.Demand = &demand
			r.Warnings = append(r.Warnings, censored(s, u, t.CPUs))
		}
		r.Containers = append(r.Containers, c)
	}
	return r
}
