package replay

import (
	"math"
	"time"
)

// was are the figures and curves of the record itself.
func (c *Container) was(o Setup) {
	s, f := c.Series, &c.Was
	var lost, used, above time.Duration
	for i, p := range s.Places {
		end := s.Begin.Add(time.Duration(i+1) * s.Period)
		if end.Before(o.From) || !end.Before(o.To) {
			continue
		}
		lost, used = lost+p.Lost, used+p.Used
		if quota := s.limitAt(end); quota > 0 {
			above += max(0, p.Used-quota)
		}
	}
	for _, e := range s.episodes(float64(o.CPUs)) {
		c.Open = c.Open || e.open
	}
	f.Lost, f.Used, f.Above, f.Refills = exactly(lost), exactly(used), exactly(above), exactly(time.Duration(s.Refills))
	f.Delay = exactly(percentile(s.delays(Early, o), 0.99))
	f.Delay.Low = min(f.Delay.Value, percentile(s.delays(Late, o), 0.99))
	early, late := s.demand(Early, float64(o.CPUs)), s.demand(Late, float64(o.CPUs))
	c.WasCurves = Curves{Used: s.curve(o, func(p Place) float64 { return p.Used.Seconds() }), Lost: s.curve(o, func(p Place) float64 { return p.Lost.Seconds() }),
		Demanded: s.cut(rates(early, s, o), o), DemandLow: s.cut(rates(late, s, o), o)}
}

// delays are how much later than without a limit the work of a demand was done, in the record.
func (s *Series) delays(r Reading, o Setup) (list []sample) {
	cpus := float64(o.CPUs)
	runs := s.recorded(cpus)
	at, k, sum, end := time.Duration(0), 0, time.Duration(0), time.Duration(len(s.Places))*s.Period
	for _, g := range s.demand(r, cpus) {
		wall := g.end() - g.at
		pieces := max(1, int((wall+grain-1)/grain))
		for i := range pieces {
			work := g.work / time.Duration(pieces)
			ideal := g.at + wall*time.Duration(i+1)/time.Duration(pieces)
			at += work
			for k < len(runs) && sum+runs[k].work < at-time.Duration(pieces) { // less than a rounding is not work
				sum += runs[k].work
				k++
			}
			done := end
			if k < len(runs) {
				done = runs[k].at + time.Duration(float64(max(0, at-sum))/runs[k].rate)
			}
			if came := s.Begin.Add(ideal - wall/time.Duration(pieces)); !came.Before(o.From) && came.Before(o.To) {
				list = append(list, sample{max(0, done-ideal), work})
			}
		}
	}
	return list
}

// recorded is when the recorded work was done.
func (s *Series) recorded(cpus float64) (list []segment) {
	eps := s.episodes(cpus)
	left := eps
	for i := 0; i < len(s.Places); {
		if len(left) > 0 && i == left[0].first {
			list = append(list, s.ran(left[0])...)
			i, left = left[0].last+1, left[1:]
			continue
		}
		if s.Places[i].Used > 0 {
			list = append(list, s.free(i, Early, eps))
		}
		i++
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

// rates is how much work of segments there is in each step.
func rates(segments []segment, s *Series, o Setup) []float64 {
	list := make([]float64, o.steps())
	for _, g := range segments {
		at := s.Begin.Add(g.at).Sub(o.From)
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
