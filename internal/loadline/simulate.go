package loadline

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Rule says which periods are broken.
type Rule int

const (
	// Strict: a period is broken if work that quota and burst admit is left undone at its end. It is what the text of
	// the published model says.
	Strict Rule = iota
	// Published: of those only the periods in which something could be shared out, as the published program counted.
	// It is blind to the worst periods, those in which every container uses its whole quota (docs/MODEL.md).
	Published
)

func (r Rule) String() string { return [...]string{"strict", "published"}[r] }

// Replay says how a recording becomes demand.
type Replay int

const (
	// Offsets replays each recording in its order, in a circle, from moments drawn at random.
	Offsets Replay = iota
	// Blocks draws blocks of the recording, as long as its memory (a circular block bootstrap).
	Blocks
	// IID draws every period by itself. What a recording remembers from one period to the next is lost, and the benefit
	// of a burst comes out too high.
	IID
)

func (r Replay) String() string { return [...]string{"offsets", "blocks", "iid"}[r] }

// Options are what Simulate does beside the node. The zero value simulates DefaultPeriods under the strict rule.
type Options struct {
	Rule    Rule
	Periods int64 // 0: DefaultPeriods
	Seed    uint64
	Replay  Replay
	// Rho correlates the demands of the containers of one period by a Gaussian copula, from 0 to 1: a stress test. The
	// periods are independent of each other then, also those of recordings.
	Rho float64
	// Interference asks for the time that each container waits for its neighbours. It needs the model that shares out
	// period by period, which takes several times as long; the Published rule needs it anyway.
	Interference bool
	// Resamples is the number of bootstraps of the recordings: 0 for DefaultResamples, negative for none.
	Resamples int
	// Plain leaves the control variate off: to see what it is worth.
	Plain bool
}

const (
	DefaultPeriods   = 1_000_000
	DefaultResamples = 100
	mostPeriods      = 1 << 36
)

// Result is what Simulate found. Intervals are of 95 %.
type Result struct {
	Rule    Rule
	Method  string // how the figures were got
	Periods int64  // simulated
	Miss    Estimate
	WCET    Estimate // mean, in periods
	// Coincidence is P(more is admitted in a period than the capacity), exact but for the lattice: a lower bound of
	// Miss. NaN where there is no law for it (aligned or correlated demand, block bootstrap).
	Coincidence float64
	Coinciding  Estimate // the same by counting
	// Waiting is the mean work that waits at the end of a period because bursts coincided, in the capacity's unit.
	Waiting    float64
	Containers []Outcome
}

// Outcome is what a container gets. Delays are mean backlog / mean demand, in periods (Little).
type Outcome struct {
	ThrottledWithout, ThrottledWith float64 // fraction of periods without and with its burst
	DelayWithout, DelayWith         float64 // caused by the limit
	Interference                    float64 // caused by the neighbours; NaN if it was not asked for
}

// Simulate plays the node by Monte Carlo. The result depends on the arguments alone: not on the platform, nor on the
// number of CPUs.
func Simulate(n Node, o Options) (Result, error) {
	if err := n.Check(); err != nil {
		return Result{}, err
	}
	if err := n.stable(); err != nil {
		return Result{}, err
	}
	if err := o.check(n); err != nil {
		return Result{}, err
	}
	p := prepare(n, o)
	return p.result(p.run()), nil
}

func (o Options) check(n Node) error {
	switch {
	case o.Rule != Strict && o.Rule != Published:
		return refuse("Strict or Published", "rule %d", o.Rule)
	case o.Replay < Offsets || o.Replay > IID:
		return refuse("Offsets, Blocks or IID", "replay %d", o.Replay)
	case o.Periods < 0 || o.Periods > mostPeriods:
		return refuse("1,000,000 periods are usual", "%d periods", o.Periods)
	case !(o.Rho >= 0 && o.Rho < 1):
		return refuse("a correlation from 0 to below 1", "rho %v", o.Rho)
	}
	if !o.full() {
		return nil
	}
	if committed := n.Committed(); committed > n.Capacity*(1+tie) {
		return refuse("ask for the strict rule without interference, lower the limits, or take more CPUs",
			"the quotas sum to %.6g of a capacity of %.6g: nobody's quota is sure", committed, n.Capacity)
	}
	return nil
}

// full says whether the model has to share out period by period.
func (o Options) full() bool { return o.Rule == Published || o.Interference }

func (o Options) periods() int64 { return cmp.Or(o.Periods, DefaultPeriods) }

// replicas is the number of independent runs that the periods are split into: the spread of their means gives the
// interval. It is fixed, so that the result does not depend on the machine.
const replicas = 64

// plan is a simulation ready to run.
type plan struct {
	node    Node
	options Options
	scale   scale
	demand  []source
	laws    []queueing // what is known of each container without a simulation, or nil
	periods int        // of a replica
	warm    int
	cold    bool // the warm-up is shorter than the slowest queue takes
}

func prepare(n Node, o Options) *plan {
	p := &plan{node: n, options: o, scale: scale{n.Capacity}}
	p.periods = int((o.periods() + replicas - 1) / replicas)
	slow := n.relaxation()
	p.warm, p.cold = min(p.periods, slow+blockLength), slow > p.periods
	p.demand = sources(n, o, p.scale)
	p.laws = p.solve()
	return p
}

// relaxation is how many periods the slowest queue takes to forget that it began empty: some times variance / gap^2.
func (n Node) relaxation() int {
	slow, gap, variance := 0.0, n.Capacity, 0.0
	for _, c := range n.Containers {
		gap -= c.Demand.Mean()
		variance += c.Demand.Variance()
		if c.limited() {
			d := c.Quota - c.Demand.Mean()
			slow = max(slow, c.Demand.Variance()/(d*d))
		}
	}
	slow = max(slow, variance/(gap*gap))
	return int(min(10*slow, math.MaxInt32-blockLength))
}

// outcome is what a replica counted.
type outcome struct {
	tally
	shared     tally // by the model that shares out, under the published rule
	containers []share
}

// share is a container's part of an outcome.
type share struct {
	throttled, throttledWithout int64 // periods with and without the burst
	held, heldWithout           float64
	waiting                     float64
}

// run plays the replicas on as many CPUs as there are.
func (p *plan) run() []outcome {
	list := make([]outcome, replicas)
	each(replicas, func(i int) { list[i] = p.replica(i) })
	return list
}

// each calls f for 0 to n-1, on all CPUs.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f(i)
			}
		})
	}
	all.Wait()
}

// blockLength is how many periods a container is taken through at a time: what they need stays in the first cache.
const blockLength = 512

type block = [blockLength]int64

// replica plays one run: a block of one container after the other, then the node.
func (p *plan) replica(number int) outcome {
	if p.options.full() {
		return p.shareOut(number)
	}
	queues := make([]lindley, len(p.demand))
	taps := make([]tap, len(p.demand))
	for j := range queues {
		queues[j].group = p.scale.group(p.node.Containers[j])
		taps[j] = p.demand[j].open(number)
	}
	var m machine
	var x, sum block
	play := func(periods int) {
		for ; periods > 0; periods -= blockLength {
			k := min(periods, blockLength)
			clear(sum[:k])
			for j := range queues {
				taps[j].fill(x[:k])
				if p.demand[j].admitted() {
					total(x[:k], sum[:k])
					continue
				}
				if p.laws[j] == nil {
					queues[j].watch(x[:k])
				}
				queues[j].pass(x[:k], sum[:k])
			}
			m.pass(sum[:k])
		}
	}
	play(p.warm)
	m.tally = tally{}
	for j := range queues {
		queues[j].share = share{}
	}
	play(p.periods)
	o := outcome{tally: m.tally, containers: make([]share, len(queues))}
	for j, q := range queues {
		o.containers[j] = q.share
	}
	return o
}

// total adds admissions to those of the other containers.
func total(x, sum []int64) {
	sum = sum[:len(x)]
	for i, a := range x {
		sum[i] += a
	}
}

// method says how a result was got.
func (p *plan) method(controlled bool) string {
	s := fmt.Sprintf("Monte Carlo, %d replicas", replicas)
	if p.cold {
		s += " (too short for queues that are nearly full: without more periods P and E are too low)"
	}
	if controlled {
		s += ", control variate from the exact law"
	}
	return s
}
