package replay

import (
	"errors"
	"slices"
	"time"
)

// Range is a figure of the likely reading, and the least and the most of all readings.
type Range struct{ Value, Low, High time.Duration }

func exactly(d time.Duration) Range { return Range{d, d, d} }

// include has a range hold another figure. A likely one is the value, and comes first.
func (r *Range) include(d time.Duration, likely bool) {
	if likely {
		*r = exactly(d)
	}
	r.Low, r.High = min(r.Low, d), max(r.High, d)
}

// of is a figure of outcomes, the likely one first.
func of(list []*outcome, figure func(*outcome) time.Duration) (r Range) {
	for i, o := range list {
		r.include(figure(o), i == 0)
	}
	return r
}

// Figures are those of a container in one world.
type Figures struct {
	Lost    Range // wall time throttled
	Delay   Range // p99 of its work
	Above   Range // CPU time above the limit, period by period
	Used    Range
	Refills Range // counts
}

// Curves are what a picture shows, one value a step. A step with a gap has NaN.
type Curves struct {
	Used, Lost                    []float64 // CPUs; share of the time
	Demand, DemandLow, DemandHigh []float64 // CPUs; only of what was
}

// Container is one container that is replayed.
type Container struct {
	Series     *Series
	Was, Would Figures
	WasCurves  Curves
	NewCurves  Curves
	Model      *Figures // the model's own account of what was, where it can be compared: no refills, no raised quota
	Open       bool     // an episode had no end
}

// Neighbours are what the others waited for CPUs.
type Neighbours struct {
	Count           int
	WasMean, WasP99 time.Duration
	NewMean, NewP99 Range
	Worst           string // whose p99 grew most, and by how much
	WorstBy         time.Duration
}

// Result is a replay.
type Result struct {
	Containers []Container
	Neighbours Neighbours
}

// ErrNothing says that there is nothing to replay.
var ErrNothing = errors.New("no container was limited, or none used CPU time")

// Compare replays chosen containers beside all others, under a setup.
func Compare(chosen, others []*Series, o Setup, progress func()) (Result, error) {
	if len(chosen) == 0 {
		return Result{}, ErrNothing
	}
	begin := o.From
	for _, s := range append(slices.Clone(chosen), others...) {
		if s.Begin.Before(begin) {
			begin = s.Begin
		}
	}
	var r Result
	var worlds [][]*outcome
	for _, reading := range readings() {
		world, err := run(lots(chosen, others, reading, o.CPUs), o, begin)
		if err != nil {
			return r, err
		}
		worlds = append(worlds, world)
		progress()
	}
	for i, s := range chosen {
		c := Container{Series: s}
		c.Would = figuresOf(column(worlds, i))
		c.was(o)
		c.NewCurves = Curves{Used: s.cut(worlds[0][i].useCurve, o), Lost: s.cut(worlds[0][i].lostCurve, o)}
		r.Containers = append(r.Containers, c)
	}
	if err := r.model(chosen, others, o, begin); err != nil {
		return r, err
	}
	progress()
	return r, r.neighbours(chosen, others, worlds, o, begin)
}

// column are the outcomes of one group in all worlds.
func column(worlds [][]*outcome, i int) (list []*outcome) {
	for _, w := range worlds {
		list = append(list, w[i])
	}
	return list
}

// figuresOf are those of the outcomes of all readings.
func figuresOf(list []*outcome) Figures {
	return Figures{Lost: of(list, func(o *outcome) time.Duration { return o.lost }), Above: of(list, func(o *outcome) time.Duration { return o.above }),
		Used:  of(list, func(o *outcome) time.Duration { return o.used }),
		Delay: of(list, func(o *outcome) time.Duration { return percentile(o.late, 0.99) }), Refills: of(list, func(o *outcome) time.Duration { return time.Duration(o.refills) })}
}

// neighbours compares their waiting with that in a world in which the chosen do what they did.
func (r *Result) neighbours(chosen, others []*Series, worlds [][]*outcome, o Setup, begin time.Time) error {
	n := &r.Neighbours
	if n.Count = len(others); n.Count == 0 {
		return nil
	}
	old, err := run(lots(nil, append(slices.Clone(chosen), others...), Late, o.CPUs), o, begin)
	if err != nil {
		return err
	}
	was := all(old[len(chosen):])
	n.WasMean, n.WasP99 = mean(was), percentile(was, 0.99)
	for i, w := range worlds {
		now := all(w[len(chosen):])
		n.NewMean.include(mean(now), i == 0)
		n.NewP99.include(percentile(now, 0.99), i == 0)
	}
	for i, s := range others {
		k := len(chosen) + i
		if by := percentile(worlds[0][k].late, 0.99) - percentile(old[k].late, 0.99); by > n.WorstBy {
			n.Worst, n.WorstBy = s.Name, by
		}
	}
	return nil
}

func all(list []*outcome) (samples []sample) {
	for _, o := range list {
		samples = append(samples, o.late...)
	}
	return samples
}

// mean is that by work.
func mean(list []sample) time.Duration {
	sum, work := 0.0, 0.0
	for _, s := range list {
		sum += s.delay.Seconds() * s.work.Seconds()
		work += s.work.Seconds()
	}
	if work == 0 {
		return 0
	}
	return time.Duration(sum / work * float64(time.Second))
}

// model has the model say what was, with the limits as they were and without the agent's help: where that is what was recorded,
// the difference shows what the model is worth.
func (r *Result) model(chosen, others []*Series, o Setup, begin time.Time) error {
	if slices.ContainsFunc(chosen, func(s *Series) bool { return s.Raised || s.Refills > 0 }) {
		return nil
	}
	o.Limit, o.Strategy.Policy = 0, "none"
	out, err := run(lots(chosen, others, Likely, o.CPUs), o, begin)
	if err != nil {
		return err
	}
	for i := range r.Containers {
		f := figuresOf(out[i : i+1])
		r.Containers[i].Model = &f
	}
	return nil
}
