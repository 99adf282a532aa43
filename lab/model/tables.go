package main

import (
	"math"

	"plimsoll/internal/loadline"
	"plimsoll/internal/loadline/published"
)

// tables prints the tables of the article (docs/MODEL.md), which were pictures: m = 10, 20, 30.
func (l *lab) tables() {
	for _, kind := range []published.Kind{published.Exponential, published.Pareto} {
		l.print("%s demand: E / P by the published rule (P by the strict rule), %d periods\n\n", kind, l.periods)
		l.print("| m | u | b=100%% | b=200%% | b=inf |\n|---|---|---|---|---|\n")
		for _, m := range []int{10, 20, 30} {
			for _, u := range []float64{0.3, 0.5, 0.7, 0.8, 0.9} {
				l.print("| %d | %.0f%% |", m, 100*u)
				for _, b := range []float64{1, 2, math.Inf(1)} {
					n := l.node(kind, m, u, b)
					p, s := l.simulate(n, loadline.Options{Rule: loadline.Published}), l.simulate(n, loadline.Options{})
					l.print(" %.4f / %.3f%% (%.3f%%) |", p.WCET.Value, 100*p.Miss.Value, 100*s.Miss.Value)
				}
				l.print("\n")
			}
		}
		l.print("\n")
	}
}
