package replay

import (
	"errors"
	"slices"
	"time"
)

// Range is a figure of the likely readings, and the least and the most of all readings.
type Range struct{ Value, Low, High time.Duration }

func exactly(d time.Duration) Range { return Range{d, d, d} }

// rangeOf is that of a figure by reading. Its value is the mean of the likely ones.
func rangeOf(list []time.Duration) Range {
	var sum time.Duration
	likely := list[:min(samples, len(list))]
	for _, d := range likely {
		sum += d
	}
	return Range{sum / time.Duration(len(likely)), slices.Min(list), slices.Max(list)}
}

// of is a figure of outcomes, by reading.
func of(list []*outcome, figure func(*outcome) time.Duration) Range {
	var all []time.Duration
	for _, o := range list {
		all = append(all, figure(o))
	}
	return rangeOf(all)
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

// Runs is how many times Compare reports progress.
const Runs = samples + 3

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
	for i, reading := range readings() {
		machine := o
		machine.Seed += uint64(i)
		world, err := run(lots(chosen, others, reading, o), machine, begin)
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
	return Figures{Lost: of(list, func(o *outcome) time.Duration { return o.lost }),
		Above: of(list, func(o *outcome) time.Duration { return o.above }),
		Used:  of(list, func(o *outcome) time.Duration { return o.used }),
		Delay: of(list, func(o *outcome) time.Duration { return percentile(o.late, 0.99) }), Refills: of(list,
			func(o *outcome) time.Duration { return time.Duration(o.refills) })}
}

// neighbours compares their waiting with that in a world in which the chosen do what they did.
func (r *Result) neighbours(chosen, others []*Series, worlds [][]*outcome, o Setup, begin time.Time) error {
	n := &r.Neighbours
	if n.Count = len(others); n.Count == 0 {
		return nil
	}
	old, err := run(lots(nil, append(slices.Clone(chosen), others...), Reading{kind: late}, o), o, begin)
	if err != nil {
		return err
	}
	was := all(old[len(chosen):])
	n.WasMean, n.WasP99 = mean(was), percentile(was, 0.99)
	var means, p99s []time.Duration
	for _, w := range worlds {
		now := all(w[len(chosen):])
		means, p99s = append(means, mean(now)), append(p99s, percentile(now, 0.99))
	}
	n.NewMean, n.NewP99 = rangeOf(means), rangeOf(p99s)
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

// model has the model say what was, with the limits as they were and without the agent's help: where that is what was
// recorded, the difference shows what the model is worth.
func (r *Result) model(chosen, others []*Series, o Setup, begin time.Time) error {
	refilled := func(p Place) bool { return p.Refills > 0 }
	helped := func(s *Series) bool { return s.Raised || slices.ContainsFunc(s.Places, refilled) }
	if slices.ContainsFunc(chosen, helped) {
		return nil
	}
	o.Limit, o.Strategy.Policy = 0, "none"
	out, err := run(lots(chosen, others, Reading{}, o), o, begin)
	if err != nil {
		return err
	}
	for i := range r.Containers {
		f := figuresOf(out[i : i+1])
		r.Containers[i].Model = &f
	}
	return nil
}
