package loadline

import (
	"math"
	"slices"
)

// A recording of a thousand periods is one of many that might have been taken. How much the answer hangs on it is seen
// by answering for resampled recordings. The exact law makes that quick: an interval around P is that of J over the
// resampled recordings, J*/J, times P.

// Spread is the interval of J that comes of the shortness of a node's recordings, as factors of J: a circular block
// bootstrap. A node without recordings has none. Where no bursts coincide in the recordings there is nothing to
// multiply, and high is +Inf.
func Spread(n Node, replay Replay, resamples int, seed uint64) (low, high float64, err error) {
	if err := n.Check(); err != nil {
		return 0, 0, err
	}
	if !n.recorded() || resamples < 1 || n.within() {
		return 1, 1, nil
	}
	if replay == Blocks {
		replay = Offsets
	}
	points := n.grid(roughPoints)
	fixed, drawn := n.split()
	known, err := fixed.admitted(points, replay, newConvolver(points+1), lattice{})
	if err != nil {
		return 0, 0, err
	}
	risk := func(n, drawn Node) (float64, error) {
		sum, err := drawn.admitted(points, replay, newConvolver(points+1), known)
		return n.above(sum, points), err
	}
	base, err := risk(n, drawn)
	if err != nil {
		return 1, 1, err
	}
	if base < rounding {
		return 1, math.Inf(1), nil
	}
	blocks := drawn.blocks()
	factors, failed := make([]float64, resamples), make([]error, resamples)
	each(resamples, func(i int) {
		j, err := risk(n, drawn.resample(blocks, seed, i))
		factors[i], failed[i] = j/base, err
	})
	for _, err := range failed {
		if err != nil {
			return 0, 0, err
		}
	}
	slices.Sort(factors)
	return min(1, quantile(factors, 0.025)), max(1, quantile(factors, 0.975)), nil
}

// rounding is what convolutions may leave of a J of 0.
const rounding = 1e-12

// unseen is the probability that is not excluded (95 %) of what does not occur in a node's recordings: that of the
// shortest one. Periods that depend on each other count as one.
func (n Node) unseen() float64 {
	most := 0.0
	for _, c := range n.Containers {
		if r, ok := c.Demand.(*Recording); ok {
			most = max(most, rareEvent*float64(r.memory())/float64(r.Len()))
		}
	}
	return min(1, most)
}

// split is the node's containers with laws, and those with recordings.
func (n Node) split() (fixed, drawn Node) {
	fixed.Capacity, drawn.Capacity = n.Capacity, n.Capacity
	for _, c := range n.Containers {
		if _, ok := c.Demand.(*Recording); ok {
			drawn.Containers = append(drawn.Containers, c)
		} else {
			fixed.Containers = append(fixed.Containers, c)
		}
	}
	return fixed, drawn
}

// quantile of a sorted list, between its neighbours.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	k := int(at)
	if k+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[k] + (at-float64(k))*(sorted[k+1]-sorted[k])
}

func (n Node) recorded() bool {
	return slices.ContainsFunc(n.Containers, func(c Container) bool { _, ok := c.Demand.(*Recording); return ok })
}

// blocks are the lengths that the recordings are resampled in. Those of one clock go together: the longest counts.
func (n Node) blocks() map[*Recording]int {
	blocks, clocks := map[*Recording]int{}, map[int]int{}
	for _, c := range n.Containers {
		if r, ok := c.Demand.(*Recording); ok {
			if blocks[r] == 0 {
				blocks[r] = r.block()
			}
			clocks[c.Clock] = max(clocks[c.Clock], blocks[r])
		}
	}
	for _, c := range n.Containers {
		if r, ok := c.Demand.(*Recording); ok && c.Clock != 0 {
			blocks[r] = clocks[c.Clock]
		}
	}
	return blocks
}

// resample is the node with resampled recordings: the same for containers with the same recording, from the same
// moments for recordings of the same clock.
func (n Node) resample(blocks map[*Recording]int, seed uint64, number int) Node {
	list := slices.Clone(n.Containers)
	drawn := map[*Recording]*Recording{}
	for i, c := range list {
		r, ok := c.Demand.(*Recording)
		if !ok {
			continue
		}
		if drawn[r] == nil {
			purpose, place := clockless, i
			if c.Clock != 0 {
				purpose, place = clocked, c.Clock
			}
			rnd := stream(seed, resampled, number, purpose, place)
			drawn[r] = bare(r.resample(blocks[r], &rnd))
		}
		list[i].Demand = drawn[r]
	}
	return Node{Capacity: n.Capacity, Containers: list}
}

// bootstrap widens the intervals of a result by the shortness of the recordings.
func (p *plan) bootstrap(r *Result) {
	o := p.options
	if o.Resamples == 0 {
		o.Resamples = DefaultResamples
	}
	replay := o.Replay
	if o.Rho > 0 {
		replay = IID
	}
	low, high, err := Spread(p.node, replay, o.Resamples, o.Seed)
	if err != nil || low == 1 && high == 1 {
		return
	}
	if !math.IsInf(high, 1) {
		r.Miss = r.Miss.widen(0, low, high)
		r.WCET = r.WCET.widen(1, low, high)
	}
	unseen := p.node.unseen()
	r.Miss.High, r.WCET.High = max(r.Miss.High, unseen), max(r.WCET.High, 1+unseen)
	r.Method += ", bootstrap of the recordings"
}

// widen adds, in quadrature, the interval that factors of what is above the base make.
func (e Estimate) widen(base, low, high float64) Estimate {
	above := e.Value - base
	return Estimate{
		Value: e.Value,
		Low:   max(base, e.Value-math.Hypot(e.Value-e.Low, above*(1-low))),
		High:  e.Value + math.Hypot(e.High-e.Value, above*(high-1)),
	}
}
