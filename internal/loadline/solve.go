package loadline

import (
	"math"
	"slices"
)

// LargestBurst is the largest burst, in quotas and the same for all containers, with which P(WCET = 1) is at least the
// target under the strict rule; +Inf if any burst will do, 0 if none does. It bisects the exact J. Where Monte Carlo,
// which also sees the work left over from earlier periods, does not confirm the answer, it bisects that below.
func LargestBurst(n Node, target float64, o Options) (float64, error) {
	if !(target > 0 && target < 1) {
		return 0, refuse("a probability such as 0.999", "target %v", target)
	}
	if err := n.Check(); err != nil {
		return 0, err
	}
	if err := n.stable(); err != nil {
		return 0, err
	}
	o.Rule, o.Interference, o.Resamples = Strict, false, -1
	keeps := func(b float64) (bool, error) {
		j, err := Coincidence(n.bursting(b), o.lawful())
		return j <= 1-target, err
	}
	b, err := bisect(keeps)
	if err != nil || b == 0 {
		return 0, err
	}
	confirmed := func(b float64) (bool, error) {
		r, err := Simulate(n.bursting(b), o)
		return r.Miss.Value <= 1-target, err
	}
	if ok, err := confirmed(b); err != nil || ok {
		return b, err
	}
	return halve(0, min(b, mostBurst), leastBurst, confirmed)
}

// lawful is the kind of replay whose J is next to the simulation's.
func (o Options) lawful() Replay {
	if o.Replay == IID || o.Rho > 0 {
		return IID
	}
	return Offsets
}

const (
	mostBurst  = 64.0 // quotas; beyond, it is all or nothing
	leastBurst = 1.0 / 128
)

// bisect finds the largest burst that keeps a condition which more burst only hurts.
func bisect(keeps func(b float64) (bool, error)) (float64, error) {
	low, high := 0.0, 1.0
	for _, b := range []float64{math.Inf(1), 0} {
		ok, err := keeps(b)
		if err != nil || ok == (b > 0) {
			return b, err
		}
	}
	for ; high < mostBurst; high *= 2 {
		ok, err := keeps(high)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low = high
	}
	return halve(low, high, leastBurst, keeps)
}

// halve narrows the range in which a condition that low keeps and high does not turns over, and returns its lower end.
func halve[T int | float64](low, high, width T, keeps func(T) (bool, error)) (T, error) {
	for high-low > width {
		mid := (low + high) / 2
		ok, err := keeps(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// bursting is the node with bursts of so many quotas.
func (n Node) bursting(b float64) Node {
	list := make([]Container, len(n.Containers))
	for i, c := range n.Containers {
		list[i] = c
		if list[i].Burst = b * c.Quota; b == 0 {
			list[i].Burst = 0
		}
	}
	return Node{n.Capacity, list}
}

// MostPods is how many containers like this one fit on a capacity while P(WCET = 1) is at least the target. As with
// LargestBurst, J comes first. More than the quotas have room for are possible: what is not used is not needed. Then
// the model's word is weaker (docs/MODEL.md).
func MostPods(c Container, capacity, target float64, o Options) (int, error) {
	if !(target > 0 && target < 1) {
		return 0, refuse("a probability such as 0.999", "target %v", target)
	}
	if err := (Node{capacity, []Container{c}}).Check(); err != nil {
		return 0, err
	}
	o.Rule, o.Interference, o.Resamples = Strict, false, -1
	most := int(min(capacity/c.use()*(1+tie), maxContainers))
	fits := func(m int) (bool, error) {
		j, err := Coincidence(Node{capacity, slices.Repeat([]Container{c}, m)}, o.lawful())
		return j <= 1-target && float64(m)*c.use() < capacity, err
	}
	m, err := halve(0, most+1, 1, fits)
	if err != nil || m == 0 {
		return 0, err
	}
	confirmed := func(m int) (bool, error) {
		if m == 0 {
			return true, nil
		}
		few := o
		few.Periods = min(o.periods(), mostWork/int64(m))
		r, err := Simulate(Node{capacity, slices.Repeat([]Container{c}, m)}, few)
		return r.Miss.Value <= 1-target, err
	}
	high := m + 1
	for step := 1; ; step *= 2 { // the answer is mostly close below
		if ok, err := confirmed(m); err != nil {
			return 0, err
		} else if ok {
			return halve(m, high, 1, confirmed)
		}
		high, m = m, max(0, m-step)
	}
}

// mostWork bounds the containers of a simulation times its periods: one of thousands of containers takes a second or
// so.
const mostWork = 1 << 30

// LimitFor is the lowest quota with which no more than a fraction of a recording's periods is throttled, with a burst
// of so many quotas.
func LimitFor(r *Recording, throttled, burst float64) (float64, error) {
	if !(throttled > 0 && throttled < 1) || !(burst >= 0) {
		return 0, refuse("a fraction such as 0.01, a burst of 0 or more",
			"limit for %v throttled periods with burst %v", throttled, burst)
	}
	low, high := r.mean, max(r.Max(), r.mean*(1+tie))
	for range 60 {
		mid := (low + high) / 2
		if mid > r.mean && r.throttled(mid, burst*mid) <= throttled {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}

// TurningRho is the correlation at which a node that keeps the target with independent demands keeps it no more: 0 if
// it does not keep it at all, 1 if it keeps it at every correlation below 0.99. Correlated demands have lost the order
// and the clocks of recordings: NaN if that alone turns the verdict.
// The random numbers are the same at each.
func TurningRho(n Node, target float64, o Options) (float64, error) {
	if !(target > 0 && target < 1) {
		return 0, refuse("a probability such as 0.999", "target %v", target)
	}
	o.Rule, o.Interference, o.Resamples = Strict, false, -1
	keeps := func(rho float64) (bool, error) {
		o.Rho = rho
		r, err := Simulate(n, o)
		return r.Miss.Value <= 1-target, err
	}
	if ok, err := keeps(0); err != nil || !ok {
		return 0, err
	}
	if n.recorded() {
		n, o.Replay = n.clockless(), IID
		if ok, err := keeps(0); err != nil || !ok {
			return math.NaN(), err
		}
	}
	const most = 0.99
	if ok, err := keeps(most); err != nil || ok {
		return 1, err
	}
	return halve(0, most, 0.005, keeps)
}

// clockless is the node with all containers independent of each other.
func (n Node) clockless() Node {
	list := slices.Clone(n.Containers)
	for i := range list {
		list[i].Clock = 0
	}
	return Node{n.Capacity, list}
}
