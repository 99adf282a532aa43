package loadline

import "math"

// queueing is what the law of one container can say for every burst.
type queueing interface {
	Throttled(burst float64) float64
	Delay(burst float64) float64
}

// solve finds what there is to know of each container under this kind of replay.
func (p *plan) solve() []queueing {
	known := map[Container]queueing{}
	laws := make([]queueing, len(p.node.Containers))
	for j, c := range p.node.Containers {
		if _, recorded := c.Demand.(*Recording); !c.limited() || recorded && p.options.Replay == Blocks {
			continue
		}
		key := Container{Quota: c.Quota, Demand: c.Demand}
		q, ok := known[key]
		if !ok {
			q = p.queueing(c)
			known[key] = q
		}
		laws[j] = q
	}
	return laws
}

// queueing is the law of a container, or nil if its mean is too near to its quota.
func (p *plan) queueing(c Container) queueing {
	if r, ok := c.Demand.(*Recording); ok && p.options.Replay != IID && p.options.Rho == 0 {
		if h, err := NewHistory(r, c.Quota); err == nil {
			return h
		}
		return nil
	}
	if q, err := NewQueue(c.Demand, c.Quota); err == nil {
		return q
	}
	return nil
}

// outcomes are the containers' figures: from the law or the recording where there is one for this kind of replay, from
// the counts elsewhere.
func (p *plan) outcomes(list []outcome) []Outcome {
	all := make([]Outcome, len(p.node.Containers))
	for j, c := range p.node.Containers {
		o := &all[j]
		o.Interference = math.NaN()
		if p.options.full() {
			o.Interference = p.mean(list, func(s outcome) float64 { return s.containers[j].waiting }) / c.Demand.Mean()
		}
		if !c.limited() {
			continue
		}
		if q := p.laws[j]; q != nil {
			o.ThrottledWithout, o.DelayWithout = q.Throttled(0), q.Delay(0)
			o.ThrottledWith, o.DelayWith = q.Throttled(c.Burst), q.Delay(c.Burst)
			continue
		}
		o.ThrottledWithout = p.share(list, func(s outcome) int64 { return s.containers[j].throttledWithout })
		o.ThrottledWith = p.share(list, func(s outcome) int64 { return s.containers[j].throttled })
		o.DelayWithout = p.mean(list, func(s outcome) float64 { return s.containers[j].heldWithout }) / c.Demand.Mean()
		o.DelayWith = p.mean(list, func(s outcome) float64 { return s.containers[j].held }) / c.Demand.Mean()
	}
	return all
}

// share is the fraction of periods in which a container was throttled.
func (p *plan) share(list []outcome, of func(outcome) int64) float64 {
	throttled, periods := int64(0), int64(0)
	for _, o := range list {
		throttled += of(o)
		periods += o.periods
	}
	return float64(throttled) / float64(periods)
}

// mean is the mean over periods of a sum of work, in the capacity's unit.
func (p *plan) mean(list []outcome, of func(outcome) float64) float64 {
	sum, periods := 0.0, 0.0
	for _, o := range list {
		sum += of(o)
		periods += float64(o.periods)
	}
	return p.scale.float(sum / periods)
}
