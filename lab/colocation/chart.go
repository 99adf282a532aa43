package main

import (
	"fmt"

	"plimsoll/internal/figure"
)

// chart draws the distributions of the response times.
func (r *result) chart() *figure.Canvas {
	const slowest = 0.001 // share of requests at the right end
	top := 0.0
	var curves []figure.Curve
	for _, f := range r.Rows {
		c := figure.Curve{Name: string(f.Row)}
		for _, p := range f.Curve {
			if slower := 1 - p.Percent/100; slower >= slowest-1e-9 {
				c.X, c.Y = append(c.X, slower), append(c.Y, p.Latency)
				top = max(top, p.Latency)
			}
		}
		curves = append(curves, c)
	}
	return figure.Lines{
		Title:    "Response time of nginx beside ffmpeg",
		Subtitle: fmt.Sprintf("%g requests a second, %d CPUs, Linux %s, cgroup %s", r.Conditions.Rate, r.Conditions.CPUs, r.Conditions.Kernel, r.Conditions.Cgroup),
		Panels: []figure.Panel{{
			X: figure.Axis{Label: "requests that took longer, %", Min: slowest, Max: 0.5, Log: true, Reversed: true, Percent: true,
				Ticks: []float64{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001}},
			Y:      figure.Axis{Label: "response time, ms", Min: 0, Max: max(top*1.05, 1)},
			Curves: curves,
		}},
		Note: "go run ./lab/colocation -svg FILE. A response time counts from when the request was due.",
	}.Draw()
}
