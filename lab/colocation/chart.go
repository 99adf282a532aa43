package main

import (
	"fmt"

	"plimsoll/internal/figure"
	"plimsoll/lab/experiment"
)

// Chart draws the distributions of the response times.
func (r *result) Chart() *figure.Canvas {
	var curves []experiment.Curve
	for _, f := range r.Rows {
		curves = append(curves, experiment.Curve{Name: string(f.Row), Points: f.Curve})
	}
	c := r.Conditions
	return experiment.Distributions("Response time of nginx beside ffmpeg",
		fmt.Sprintf("%g requests a second, %d CPUs, Linux %s, cgroup %s", c.Rate, c.CPUs, c.Kernel, c.Cgroup),
		"go run ./lab/colocation -svg FILE. A response time counts from when the request was due.", curves)
}
