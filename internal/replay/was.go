package replay

import (
	"math"
	"slices"
	"time"
)

// was are the figures and curves of the record itself.
func (c *Container) was(o Setup) {
	s, f := c.Series, &c.Was
	var lost, used, above, refills time.Duration
	for i, p := range s.Places {
		end := s.Begin.Add(time.Duration(i+1) * s.Period)
		if end.Before(o.From) || !end.Before(o.To) {
			continue
		}
		lost, used, refills = lost+p.Lost, used+p.Used, refills+time.Duration(p.Refills)
		if quota := s.LimitAt(end); quota > 0 {
			above += max(0, p.Used-quota)
		}
	}
	h := s.history(float64(o.CPUs))
	for _, e := range h.episodes {
		c.Open = c.Open || e.open && s.Begin.Add(time.Duration(e.first)*s.Period).Before(o.To)
	}
	f.Lost, f.Used, f.Above, f.Refills = exactly(lost), exactly(used), exactly(above), exactly(refills)
	c.WasCurves = Curves{Used: s.curve(o, func(p Place) float64 { return p.Used.Seconds() }),
		Lost: s.curve(o, func(p Place) float64 { return p.Lost.Seconds() })}
	var delays []time.Duration
	for _, r := range readings() {
		demand := s.demand(h, r, o.Seed)
		delays = append(delays, percentile(s.delays(demand, o), 0.99))
		if curve := s.cut(rates(demand, s, o), o); c.WasCurves.Demand == nil {
			c.WasCurves.Demand, c.WasCurves.DemandLow, c.WasCurves.DemandHigh = curve, slices.Clone(
				curve), slices.Clone(curve)
		} else {
			c.WasCurves.widen(curve)
		}
	}
	f.Delay = rangeOf(delays)
}

// widen has the bounds of the demand hold another reading.
func (c *Curves) widen(curve []float64) {
	for i, v := range curve {
		c.DemandLow[i], c.DemandHigh[i] = min(c.DemandLow[i], v), max(c.DemandHigh[i], v)
	}
}

// delays are how much later than without a limit the work of a demand was done, in the record.
func (s *Series) delays(demand []stint, o Setup) (list []sample) {
	for _, x := range demand {
		if came := s.Begin.Add(x.came); !came.Before(o.From) && came.Before(o.To) {
			list = append(list, sample{max(0, x.ran-x.came), x.work})
		}
	}
	return list
}

// steps is how many steps a setup's curves have.
func (o Setup) steps() int { return int((o.To.Sub(o.From) + o.Step - 1) / o.Step) }

// curve sums a figure of the places of each step, by the second.
func (s *Series) curve(o Setup, figure func(Place) float64) []float64 {
	list := make([]float64, o.steps())
	for i, p := range s.Places {
		middle := s.Begin.Add(time.Duration(i)*s.Period + s.Period/2)
		if k := int(middle.Sub(o.From) / o.Step); !middle.Before(o.From) && k < len(list) {
			list[k] += figure(p) / o.Step.Seconds()
		}
	}
	return s.cut(list, o)
}

// rates is how much work came in each step.
func rates(demand []stint, s *Series, o Setup) []float64 {
	list := make([]float64, o.steps())
	for _, g := range demand {
		at := s.Begin.Add(g.came).Sub(o.From)
		if k := int(at / o.Step); at >= 0 && k < len(list) {
			list[k] += g.work.Seconds() / o.Step.Seconds()
		}
	}
	return list
}

// cut puts NaN where a step has a place that was not recorded.
func (s *Series) cut(list []float64, o Setup) []float64 {
	for i, p := range s.Places {
		middle := s.Begin.Add(time.Duration(i)*s.Period + s.Period/2)
		if k := int(middle.Sub(o.From) / o.Step); p.Unknown && !middle.Before(o.From) && k < len(list) {
			list[k] = math.NaN()
		}
	}
	return list
}
