package loadline

import (
	"errors"
	"math"
)

// Question is what an operator asks about a kind of container with a recorded demand.
type Question struct {
	Demand   *Recording
	Quota    float64 // today's limit
	Pods     int     // like it on the node
	Capacity float64
	Target   float64 // P(WCET = 1); 0: 0.999
	// Throttled is the fraction of periods that may be throttled; 0: 0.01.
	Throttled float64
	// MostBurst is the largest burst that the kernel grants, in quotas; 0: 1, as mainline does.
	MostBurst float64
	Seed      uint64
	Periods   int64 // of each simulation; 0: DefaultPeriods
}

// Advice answers. Bursts are in quotas.
type Advice struct {
	// Saturated: the mean demand is at or above the limit. No burst helps, and only the figures about limits hold.
	Saturated bool

	Without Outcome // today's limit without a burst, in the throttled and delay fields
	Needed  float64 // the burst with which no more than Question.Throttled of the periods is throttled
	Largest float64 // the burst that keeps the target; +Inf: any
	Granted float64 // the least of Largest and what the kernel grants
	With    Outcome // with Granted
	Miss    Estimate
	Enough  bool // Needed <= Granted: a burst does it, and the limit may stay

	MostPods   int     // like it, with the granted burst, that keep the target
	Limit      float64 // that needs no burst
	LimitBurst float64 // that suffices with a burst of Granted
	Saving     float64 // Pods * (Quota - LimitBurst): below 0, the limit must rise by so much

	// Sure is the fraction of resampled recordings for which the granted burst keeps the target.
	Sure       float64
	TurningRho float64 // the correlation between the containers at which the target is kept no more; NaN: not known
}

func (q Question) defaults() Question {
	if q.Target == 0 {
		q.Target = 0.999
	}
	if q.Throttled == 0 {
		q.Throttled = 0.01
	}
	if q.MostBurst == 0 {
		q.MostBurst = 1
	}
	return q
}

func (q Question) check() error {
	switch {
	case q.Demand == nil:
		return refuse("plimsoll record makes one", "no recording")
	case q.Pods < 1 || q.Pods > maxContainers:
		return refuse("one or more", "%d pods", q.Pods)
	case !positive(q.Quota):
		return refuse("today's limit, above 0 and finite", "quota %v", q.Quota)
	case !(q.Target > 0 && q.Target < 1):
		return refuse("a probability such as 0.999", "target %v", q.Target)
	case !(q.Throttled > 0 && q.Throttled < 1):
		return refuse("a fraction such as 0.01", "throttled %v", q.Throttled)
	case !(q.MostBurst > 0):
		return refuse("1 on mainline", "most burst %v", q.MostBurst)
	}
	return q.node(0).Check()
}

// node is the node with bursts of so many quotas.
func (q Question) node(burst float64) Node {
	list := make([]Container, q.Pods)
	for i := range list {
		list[i] = Container{Quota: q.Quota, Demand: q.Demand}
	}
	return Node{q.Capacity, list}.bursting(burst)
}

// Advise answers. It does not say "safe": what it says holds for demand like the recorded, for as many containers as
// were asked about, and up to the correlation that it names.
func Advise(q Question) (Advice, error) {
	q = q.defaults()
	if err := q.check(); err != nil {
		return Advice{}, err
	}
	var a Advice
	h, err := NewHistory(q.Demand, q.Quota)
	if errors.Is(err, ErrUnstable) {
		a.Saturated = true
		return a, q.limits(&a)
	}
	if err != nil {
		return Advice{}, err
	}
	a.Needed = h.Enough(q.Throttled) / q.Quota
	o := Options{Seed: q.Seed, Periods: q.Periods}
	if a.Largest, err = LargestBurst(q.node(0), q.Target, o); err != nil {
		return Advice{}, err
	}
	a.Granted = min(a.Largest, q.MostBurst)
	a.Enough = a.Needed <= a.Granted
	if err := q.limits(&a); err != nil {
		return Advice{}, err
	}
	r, err := Simulate(q.node(a.Granted), o)
	if err != nil {
		return Advice{}, err
	}
	nan := math.NaN()
	a.Miss, a.With = r.Miss, r.Containers[0]
	a.Without = Outcome{a.With.ThrottledWithout, a.With.ThrottledWithout, a.With.DelayWithout, a.With.DelayWithout, nan}
	return a, q.conditions(&a, r, o)
}

// limits are the figures about limits, with the burst that is granted.
func (q Question) limits(a *Advice) (err error) {
	if a.Limit, err = LimitFor(q.Demand, q.Throttled, 0); err != nil {
		return err
	}
	if a.LimitBurst, err = LimitFor(q.Demand, q.Throttled, a.Granted); err != nil {
		return err
	}
	a.Saving = float64(q.Pods) * (q.Quota - a.LimitBurst)
	return nil
}

// conditions are what the advice hangs on, of which r is the result.
func (q Question) conditions(a *Advice, r Result, o Options) (err error) {
	n := q.node(a.Granted)
	if a.MostPods, err = MostPods(n.Containers[0], q.Capacity, q.Target, o); err != nil {
		return err
	}
	factor := 1.0
	if r.Coincidence > rounding {
		factor = r.Miss.Value / r.Coincidence
	}
	if a.Sure, err = sure(n, q.Target, factor, q.Seed); err != nil {
		return err
	}
	a.TurningRho, err = TurningRho(n, q.Target, o)
	return err
}

// sure is the fraction of resampled recordings with which a node keeps the target. The factor makes P of J: that of the
// recording, as for the interval (bootstrap).
func sure(n Node, target, factor float64, seed uint64) (float64, error) {
	blocks := n.blocks()
	kept := 0
	for i := range DefaultResamples {
		j, err := Risk(n.resample(blocks, seed, i))
		if err != nil {
			return 0, err
		}
		if j*factor <= 1-target {
			kept++
		}
	}
	return float64(kept) / DefaultResamples, nil
}
