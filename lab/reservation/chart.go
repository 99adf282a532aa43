package main

import (
	"fmt"

	"plimsoll/internal/figure"
	"plimsoll/internal/report"
)

// Chart draws where the time went that the batch job wanted, beside the response time of memcached. Where plimsoll
// diagnose did not watch, all that was not received is one part.
func (r *result) Chart() *figure.Canvas {
	c := r.Conditions
	bars := figure.Bars{
		Title:    "A reserved CPU, beside a neighbour",
		Subtitle: fmt.Sprintf("%g of %d CPUs reserved, medians of %d rounds of %g s, Linux %s, cgroup %s", c.Request, c.CPUs, c.Rounds, c.Seconds, c.Kernel, c.Cgroup),
		Parts:    []string{"received", "behind the neighbour", "behind others", "the rest"},
		X:        figure.Axis{Label: "of the CPU time that the batch job wanted, %", Max: 1, Percent: true},
		Texts:    fmt.Sprintf("memcached: p99 at %g/s, most at <= %g ms", c.Rate, c.Bound),
		Note:     "go run ./lab/reservation -svg FILE. The rest: kernel threads, interrupts, the hypervisor, the job's own limit and threads.",
	}
	for _, f := range r.Rows {
		bars.Bars = append(bars.Bars, figure.Bar{Name: f.name(), Parts: f.parts(), Text: fmt.Sprintf("%.2f ms   %s", f.P99, f.most())})
	}
	return bars.Draw()
}

// parts are those of a bar.
func (f figures) parts() []float64 {
	s := f.Batch
	if s.Wanted <= 0 {
		return []float64{f.Utilization, 0, 0, max(1-f.Utilization, 0)}
	}
	parts := []float64{s.Received / s.Wanted, s.Waits[string(report.CauseNeighbour)] / s.Wanted, s.Waits[others] / s.Wanted}
	rest := 1.0
	for _, p := range parts {
		rest -= p
	}
	return append(parts, max(rest, 0))
}

// most is the highest throughput in words.
func (f figures) most() string {
	switch {
	case f.Most > 0:
		return fmt.Sprintf("%.0f/s", f.Most)
	case f.Least > 0:
		return fmt.Sprintf("none: %.2f ms", f.Least)
	}
	return "-"
}
