// Package published holds the figures that the authors of the model published: Huaixin Chang to Peter Zijlstra, LKML,
// 12 May 2021, message 5371BD36-55AE-4F71-B9D7-B86DC32E3D2B, which Documentation/scheduler/sched-bwc.rst points at.
// Each cell is one run of a million periods of m containers with equal quotas, under the rule that the published
// program counted by. They are what internal/loadline is held against.
package published

import (
	"fmt"
	"math"

	"plimsoll/internal/loadline"
)

// Kind is a demand law of the tables.
type Kind string

const (
	Exponential Kind = "exponential"
	Pareto      Kind = "pareto"
	Poisson     Kind = "poisson"
)

// Cell is one published result.
type Cell struct {
	Kind        Kind
	M           int
	Utilization float64
	Burst       float64 // in quotas
	WCET        float64 // mean, in periods; four digits were printed
	Miss        float64 // P(WCET > 1); two digits of the percentage were printed
}

// Periods is the length of each published run.
const Periods = 1_000_000

func (c Cell) String() string {
	return fmt.Sprintf("%s m=%d u=%.0f%% b=%.0f%%", c.Kind, c.M, 100*c.Utilization, 100*c.Burst)
}

// Node is the case of a cell, with capacity 1. Poisson jobs are a tenth of the quota;
// the Pareto law has alpha 4 and no cut.
func (c Cell) Node() (loadline.Node, error) { return c.node(1) }

// node has Poisson jobs that are longer by a factor.
func (c Cell) node(job float64) (loadline.Node, error) {
	quota := 1 / float64(c.M)
	var law loadline.Law
	var err error
	switch c.Kind {
	case Exponential:
		law, err = loadline.Exponential(c.Utilization * quota)
	case Pareto:
		law, err = loadline.Pareto(c.Utilization*quota, 4, math.Inf(1))
	default:
		law, err = loadline.Poisson(c.Utilization*quota*job, quota/10*job)
	}
	if err != nil {
		return loadline.Node{}, err
	}
	return loadline.Homogeneous(c.M, 1, c.Burst, law)
}

// rows are the cells as they were printed: for bursts of 100 %, 200 % and without bound, E(WCET) and the percentage of
// P(WCET > 1). Rows without any broken period were left out of the mail.
func rows() []row {
	return []row{
		{Exponential, 5, 0.3, [6]float64{1.0001, 0.01, 1.0002, 0.02, 1.0002, 0.02}},
		{Exponential, 5, 0.5, [6]float64{1.0176, 1.66, 1.0301, 2.76, 1.0352, 3.15}},
		{Exponential, 5, 0.7, [6]float64{1.1503, 11.52, 1.2691, 17.51, 1.4057, 21.86}},
		{Exponential, 5, 0.9, [6]float64{1.3042, 21.17, 1.6701, 34.19, 3.7937, 60.02}},
		{Exponential, 20, 0.5, [6]float64{1.0000, 0.0, 1.0001, 0.01, 1.0002, 0.02}},
		{Exponential, 20, 0.7, [6]float64{1.0060, 0.59, 1.0217, 2.05, 1.0476, 4.18}},
		{Exponential, 20, 0.9, [6]float64{1.1989, 14.07, 1.4467, 24.46, 2.8603, 46.26}},
		{Pareto, 5, 0.3, [6]float64{1.0000, 0.0, 1.0000, 0.0, 1.0001, 0.01}},
		{Pareto, 5, 0.5, [6]float64{1.0001, 0.01, 1.0008, 0.08, 1.0019, 0.16}},
		{Pareto, 5, 0.7, [6]float64{1.0117, 1.11, 1.0234, 2.11, 1.0308, 2.38}},
		{Pareto, 5, 0.9, [6]float64{1.3994, 21.97, 1.6059, 26.49, 1.8296, 28.78}},
		{Pareto, 20, 0.7, [6]float64{1.0000, 0.0, 1.0001, 0.01, 1.0013, 0.12}},
		{Pareto, 20, 0.9, [6]float64{1.0447, 3.96, 1.0941, 7.49, 1.1622, 10.59}},
		{Poisson, 5, 0.7, [6]float64{1.0071, 0.69, 1.0071, 0.69, 1.0071, 0.70}},
		{Poisson, 5, 0.9, [6]float64{1.4313, 25.22, 1.5124, 27.29, 1.5237, 27.52}},
		{Poisson, 20, 0.9, [6]float64{1.0708, 6.06, 1.0879, 7.20, 1.0903, 7.35}},
	}
}

type row struct {
	kind        Kind
	m           int
	utilization float64
	printed     [6]float64
}

// Cells are all of them.
func Cells() []Cell {
	var list []Cell
	for _, r := range rows() {
		for i, burst := range []float64{1, 2, math.Inf(1)} {
			list = append(list, Cell{r.kind, r.m, r.utilization, burst, r.printed[2*i], r.printed[2*i+1] / 100})
		}
	}
	return list
}

// Check is a cell beside what Simulate makes of it.
type Check struct {
	Cell
	Mine  loadline.Result
	ZMiss float64 // (published - mine) / the standard error of the difference, rounding included
	ZWCET float64
}

// Against runs a cell for so many periods under the published rule.
func Against(c Cell, periods int64, seed uint64) (Check, error) {
	r, err := c.run(1, periods, seed)
	if err != nil {
		return Check{}, err
	}
	z := func(printed float64, e loadline.Estimate, step float64) float64 {
		sigma := (e.High - e.Low) / 4
		other := sigma * math.Sqrt(float64(r.Periods)/Periods)
		// Nothing seen in n periods still has the spread of one event.
		other = max(other, 1.0/Periods)
		return (printed - e.Value) / math.Sqrt(sigma*sigma+other*other+step*step/12)
	}
	return Check{Cell: c, Mine: r, ZMiss: z(c.Miss, r.Miss, 1e-4), ZWCET: z(c.WCET, r.WCET, 1e-4)}, nil
}

func (c Cell) run(job float64, periods int64, seed uint64) (loadline.Result, error) {
	n, err := c.node(job)
	if err != nil {
		return loadline.Result{}, err
	}
	return loadline.Simulate(n, loadline.Options{Rule: loadline.Published, Periods: periods, Seed: seed, Plain: true})
}

// Bracket is what a Poisson cell has to lie in. There, work often fills the node exactly, and the last bit of a
// floating point number decided whether the published program counted such a period as broken. In low none is, in high
// all are: its jobs are longer by a hundred-thousandth.
func Bracket(c Cell, periods int64, seed uint64) (low, high loadline.Result, err error) {
	if low, err = c.run(1, periods, seed); err != nil {
		return low, high, err
	}
	high, err = c.run(1+1e-5, periods, seed)
	return low, high, err
}

// Within says whether the published figures lie in a bracket, but for three standard errors of theirs and its own.
func (c Cell) Within(low, high loadline.Result) bool {
	between := func(x float64, low, high loadline.Estimate) bool {
		return x >= low.Value-3*(low.High-low.Low)/4-6e-4 && x <= high.Value+3*(high.High-high.Low)/4+6e-4
	}
	return between(c.Miss, low.Miss, high.Miss) && between(c.WCET, low.WCET, high.WCET)
}
