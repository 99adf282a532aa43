package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"plimsoll/internal/figure"
	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

// periods of each simulation: enough for a line, and quick enough to be checked with every change.
const periods = 50_000

// law is a demand at a mean, and how far its figures reach.
type law struct {
	name        string
	of          func(mean float64) (loadline.Law, error)
	times, mets []float64 // the ticks of the axes
}

func exponential() law {
	return law{"exponential", loadline.Exponential, []float64{1, 1.2, 1.5, 2, 3, 4, 5},
		[]float64{0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}}
}

func pareto() law {
	of := func(mean float64) (loadline.Law, error) { return loadline.Pareto(mean, 4, math.Inf(1)) }
	return law{"Pareto", of, []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5}, []float64{0.75, 0.8, 0.85, 0.9, 0.95, 1}}
}

// simulate is the published model at one point.
func simulate(l law, c cell, rule loadline.Rule) loadline.Result {
	n := frame.Must(loadline.Homogeneous(c.m, 1, c.burst, frame.Must(l.of(c.u/float64(c.m)))))
	return frame.Must(loadline.Simulate(n, loadline.Options{Rule: rule, Seed: 1, Periods: periods}))
}

func tenths() []float64 {
	var list []float64
	for i := 1; i <= 9; i++ {
		list = append(list, float64(i)/10)
	}
	return list
}

// cell is a point of the published tables.
type cell struct {
	m        int
	u, burst float64
}

// table is the published model at every point: two figures are drawn of it.
type table struct {
	law   law
	cells map[cell]loadline.Result
}

func tableOf(l law) table {
	list, t := cells(), table{l, map[cell]loadline.Result{}}
	for i, r := range simulateAll(l, list, loadline.Published) {
		t.cells[list[i]] = r
	}
	return t
}

// simulateAll simulates on all CPUs at once: much of the time is the exact law's, which takes one.
func simulateAll(l law, list []cell, rule loadline.Rule) []loadline.Result {
	results, errs := make([]loadline.Result, len(list)), make([]error, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() {
			errs[k] = frame.Try(func() {
				for i := k; i < len(list); i += len(errs) {
					results[i] = simulate(l, list[i], rule)
				}
			})
		})
	}
	all.Wait()
	frame.Check(errors.Join(errs...))
	return results
}

func cells() []cell {
	var list []cell
	for _, m := range []int{10, 20, 30} {
		for _, burst := range []float64{1, 2, math.Inf(1)} {
			for _, u := range tenths() {
				list = append(list, cell{m, u, burst})
			}
		}
	}
	return list
}

// draw is a row of panels, one for each number of containers, with a curve for each burst.
func (t table) draw(title string, y figure.Axis, of func(loadline.Result) float64) *figure.Canvas {
	f := figure.Lines{Title: title, Subtitle: fmt.Sprintf("%s demand, m containers of equal quotas; counted as the "+
		"published program counted (rule published).", upper(t.law.name)),
		Note: fmt.Sprintf("plimsoll simulate, %d periods a point.", periods)}
	x := figure.Axis{Label: "mean demand, % of the quota", Min: 0.1, Max: 0.9, Percent: true,
		Ticks: []float64{0.1, 0.3, 0.5, 0.7, 0.9}}
	for _, c := range cells() {
		title, name := fmt.Sprintf("m = %d", c.m), "burst "+report.Burst(c.burst)
		if n := len(f.Panels); n == 0 || f.Panels[n-1].Title != title {
			f.Panels = append(f.Panels, figure.Panel{Title: title, X: x, Y: y})
		}
		p := &f.Panels[len(f.Panels)-1]
		if n := len(p.Curves); n == 0 || p.Curves[n-1].Name != name {
			p.Curves = append(p.Curves, figure.Curve{Name: name})
		}
		curve := &p.Curves[len(p.Curves)-1]
		curve.X, curve.Y = append(curve.X, c.u), append(curve.Y, of(t.cells[c]))
	}
	return f.Draw()
}

// expectedTime has its axis reversed, as the published figure has: the better is above.
func (t table) expectedTime() *figure.Canvas {
	ticks := t.law.times
	y := figure.Axis{Label: "E(WCET), periods", Min: 1, Max: ticks[len(ticks)-1], Log: true, Reversed: true,
		Ticks: ticks}
	return t.draw("Expected time of a period's work", y, func(r loadline.Result) float64 { return r.WCET.Value })
}

func (t table) met() *figure.Canvas {
	y := figure.Axis{Label: "P(WCET = 1 period), %", Min: t.law.mets[0], Max: 1, Percent: true, Ticks: t.law.mets}
	return t.draw("Probability that a period's work is done in the period", y,
		func(r loadline.Result) float64 { return 1 - r.Miss.Value })
}

func upper(s string) string { return string(s[0]&^0x20) + s[1:] }

// riskMap is the strict rule over containers and utilization, with the burst that mainline kernels grant.
func riskMap(l law) *figure.Canvas {
	h := figure.Heat{Title: "How often bursts coincide: " + l.name + " demand",
		Subtitle: "P(WCET > 1 period) in %, burst 100 % of the quota, strict rule.",
		XLabel:   "containers of equal quotas", YLabel: "mean demand, % of the quota", Lo: 1e-6, Hi: 1, Limit: 1e-3,
		Key:  "P(WCET = 1 period) = 99.9 %",
		Note: fmt.Sprintf("plimsoll simulate, %d periods a cell; 0 is less than 0.0001 %%.", periods)}
	counts, loads := []int{5, 10, 15, 20, 25, 30, 35, 40}, tenths()[2:]
	var list []cell
	for _, u := range loads {
		for _, m := range counts {
			list = append(list, cell{m, u, 1})
		}
	}
	results := simulateAll(l, list, loadline.Strict)
	for _, m := range counts {
		h.X = append(h.X, fmt.Sprint(m))
	}
	for row, u := range loads {
		var values []float64
		var cells []string
		for column := range counts {
			p := results[row*len(counts)+column].Miss.Value
			values, cells = append(values, p), append(cells, spell(p))
		}
		h.Y = append(h.Y, fmt.Sprintf("%.0f", 100*u))
		h.Values, h.Cells = append(h.Values, values), append(h.Cells, cells)
	}
	return h.Draw()
}

// spell writes a risk in percent.
func spell(p float64) string {
	if p < 1e-6 {
		return "0"
	}
	return fmt.Sprintf("%.2g", 100*p)
}
