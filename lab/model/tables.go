package main

import (
	"fmt"
	"math"

	"plimsoll/internal/loadline"
	"plimsoll/internal/loadline/published"
)

// cells prints every published cell beside what the published rule gives, and fails if one is too far off.
func (l *lab) cells() {
	l.print("published cells, published rule, %d periods each; z = (published - mine) / standard error\n\n", l.periods)
	l.print("%-34s %18s %18s %6s %6s\n", "cell", "published E/P", "mine E/P", "z(E)", "z(P)")
	worst, sum, count := 0.0, 0.0, 0
	for _, c := range published.Cells() {
		if c.Kind == published.Poisson {
			continue
		}
		k, err := published.Against(c, l.periods, l.seed)
		if l.fail(err); err != nil {
			return
		}
		l.print("%-34v %9.4f/%6.2f %% %9.4f/%6.3f %% %+6.1f %+6.1f\n", c, c.WCET, 100*c.Miss, k.Mine.WCET.Value,
			100*k.Mine.Miss.Value, k.ZWCET, k.ZMiss)
		for _, z := range []float64{k.ZWCET, k.ZMiss} {
			worst = max(worst, math.Abs(z))
			sum += z * z
			count++
		}
	}
	l.print("\n%d figures: rms of z %.2f, worst %.1f\n\n", count, math.Sqrt(sum/float64(count)), worst)
	outside := l.brackets()
	if worst > 3 || outside > 0 {
		l.fail(fmt.Errorf("the worst figure is %.1f standard errors off, %d Poisson cells are outside of their brackets", worst, outside))
	}
}

// brackets prints the Poisson cells: the figures lie between ties that count as met and ties that count as broken.
func (l *lab) brackets() (outside int) {
	l.print("Poisson cells: ties met .. ties broken\n\n%-34s %18s %37s\n", "cell", "published E/P", "bracket E/P")
	for _, c := range published.Cells() {
		if c.Kind != published.Poisson {
			continue
		}
		low, high, err := published.Bracket(c, l.periods, l.seed)
		if l.fail(err); err != nil {
			return 0
		}
		word := "within"
		if !c.Within(low, high) {
			word = "OUTSIDE"
			outside++
		}
		l.print("%-34v %9.4f/%6.2f %% %9.4f/%6.2f %% ..%9.4f/%6.2f %% %s\n", c, c.WCET, 100*c.Miss, low.WCET.Value,
			100*low.Miss.Value, high.WCET.Value, 100*high.Miss.Value, word)
	}
	l.print("\n")
	return outside
}

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
