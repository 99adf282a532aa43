package experiment

import (
	"bytes"
	"fmt"

	"plimsoll/internal/figure"
)

// Curve is a distribution of latencies.
type Curve struct {
	Name   string
	Points []Percentile
}

// Distributions draws latencies over the percentile, which is stretched towards the slowest requests: 90, 99 and 99.9 are
// equally far apart. Requests of which half took longer are at the left end.
func Distributions(title, subtitle, note string, curves []Curve) *figure.Canvas {
	const slowest = 0.001 // share of requests at the right end
	top := 0.0
	var lines []figure.Curve
	for _, curve := range curves {
		c := figure.Curve{Name: curve.Name}
		for _, p := range curve.Points {
			if slower := 1 - p.Percent/100; slower >= slowest-1e-9 && slower <= 0.5 {
				c.X, c.Y = append(c.X, slower), append(c.Y, p.Latency)
				top = max(top, p.Latency)
			}
		}
		lines = append(lines, c)
	}
	return figure.Lines{Title: title, Subtitle: subtitle, Note: note, Panels: []figure.Panel{{
		X: figure.Axis{Label: "requests that took longer, %", Min: slowest, Max: 0.5, Log: true, Reversed: true, Percent: true,
			Ticks: []float64{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001}},
		Y:      figure.Axis{Label: "response time, ms", Min: 0, Max: max(top*1.05, 1)},
		Curves: lines,
	}}}.Draw()
}

// Chart draws the latencies of all modes, as SVG.
func (r *Result) Chart() []byte {
	c := r.Conditions
	var curves []Curve
	for _, m := range r.Modes {
		curves = append(curves, Curve{fmt.Sprintf("%s: %s, %.1f %%", m.Name, spell(m.P99), 100*m.ThrottledRatio), m.Percentiles})
	}
	canvas := Distributions(fmt.Sprintf("Response time of a service with a limit of %g CPUs", c.Limit),
		fmt.Sprintf("%.0f ms of CPU time a request, %.1f requests a second: %.0f %% of the limit on average. Linux %s, cgroup %s, %d CPUs.",
			c.Work, c.Rate, 100*c.Utilization, c.Kernel, c.Cgroup, c.CPUs),
		"Beside each mode: p99, and the share of the service's periods that were throttled.", curves)
	var b bytes.Buffer
	_ = canvas.SVG(&b) // into memory: cannot fail
	return b.Bytes()
}
