package replay

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/trial"
)

// Setup is what a replay is asked for.
type Setup struct {
	From, To time.Time // that is told of; what the series have before is the way there, and after how it ended
	CPUs     int
	Limit    time.Duration // CPU time per 100 ms; 0: as it was
	Strategy strategy.Strategy
	Seed     uint64
	Step     time.Duration // of the curves
}

// drain is for how long work that was late may still be done after the end.
const drain = 2 * time.Second

// lot is what one group does in a run.
type lot struct {
	series  *Series
	path    string
	load    sim.Load
	jobs    []sim.Job
	limited bool // it has its limit, and the strategy
}

// outcome is what came of one group in one run.
type outcome struct {
	lost, used, above time.Duration
	refills           int64
	late              []sample  // of work
	useCurve          []float64 // CPUs, of each step
	lostCurve         []float64 // share of the time
}

// sample is how much later than without a limit so much work was done.
type sample struct{ delay, work time.Duration }

// lots make the loads: the chosen with a reading of their demand, all others as they were.
func lots(chosen, others []*Series, r Reading, o Setup) (list []*lot) {
	for i, s := range append(slices.Clone(chosen), others...) {
		x := &lot{series: s, path: fmt.Sprintf("/replay/c%d", i), limited: i < len(chosen)}
		reading := r
		if !x.limited {
			reading = Reading{kind: late}
		}
		x.load, x.jobs = load(s.demand(s.history(float64(o.CPUs)), reading, o.Seed))
		list = append(list, x)
	}
	return list
}

// run runs lots on one machine, on which the shipped agent decides.
func run(list []*lot, o Setup, begin time.Time) ([]*outcome, error) {
	scene := trial.Scenario{Kernel: sim.Config{CPUs: o.CPUs, Version: 2, BurstFile: true, Start: begin, Seed: o.Seed},
		Threshold: o.Strategy.SharePoolThresholdPercent, Events: true, Ahead: true}
	for _, x := range list {
		scene.Groups = append(scene.Groups, x.group(o, begin))
	}
	w, err := trial.New(scene)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if x.limited && o.Limit == 0 {
			for _, l := range x.series.Limits[1:] {
				w.Kernel.At(l.From, func() { _ = w.Limit(x.path, l.Quota, x.series.Period) })
			}
		}
	}
	w.Run(o.From.Sub(begin), nil)
	out := make([]*outcome, len(list))
	for i := range out {
		out[i] = &outcome{}
	}
	for at := o.From; at.Before(o.To); at = at.Add(o.Step) {
		step := min(o.Step, o.To.Sub(at))
		before := meter(w.Kernel, list)
		w.Run(step, nil)
		for i, m := range meter(w.Kernel, list) {
			used, lost := m.used-before[i].used, m.lost-before[i].lost
			out[i].used += used
			out[i].lost += lost
			out[i].useCurve = append(out[i].useCurve, used.Seconds()/step.Seconds())
			out[i].lostCurve = append(out[i].lostCurve, lost.Seconds()/step.Seconds())
		}
	}
	w.Run(drain, nil)
	for i, x := range list {
		x.conclude(w.Kernel, o, out[i])
	}
	return out, nil
}

// group is a lot as a container of a scenario.
func (x *lot) group(o Setup, begin time.Time) trial.Group {
	s := x.series
	g := trial.Group{Path: x.path, Tenant: s.Namespace, Quota: cpu.Unlimited, Period: s.Period,
		Load: since(x.jobs, x.load, s.Begin.Sub(begin)), Expiry: s.Begin, Strategy: strategy.Default()}
	if x.limited {
		g.Quota, g.Strategy = o.limit(s, s.Limits[0].Quota), o.Strategy
	}
	if g.Quota == 0 {
		g.Quota = cpu.Unlimited
	}
	return g
}

// limit is what a container is limited to per period, where its own limit is quota.
func (o Setup) limit(s *Series, quota time.Duration) time.Duration {
	if o.Limit > 0 {
		return o.Limit * s.Period / cpu.DefaultPeriod
	}
	return quota
}

// since shifts jobs to the machine's begin. What came before has gone.
func since(jobs []sim.Job, l sim.Load, shift time.Duration) sim.Load {
	moved := slices.Clone(jobs)
	for i := range moved {
		moved[i].At += shift
	}
	return sim.Script(l.Threads, slices.DeleteFunc(moved, func(j sim.Job) bool { return j.At < 0 })...)
}

// counts are those of a group up to an instant.
type counts struct{ used, lost time.Duration }

func meter(k *sim.Kernel, list []*lot) []counts {
	out := make([]counts, len(list))
	for i, x := range list {
		out[i] = counts{k.Used(x.path), k.ThrottledWall(x.path)}
	}
	return out
}

// conclude says what came of the work, and of the periods.
func (x *lot) conclude(k *sim.Kernel, o Setup, out *outcome) {
	within := func(t time.Time) bool { return !t.Before(o.From) && t.Before(o.To) }
	done := k.Responses(x.path)
	for _, r := range done {
		if within(r.Arrived) {
			out.add(r.Latency()-r.Cost, r.Cost)
		}
	}
	for _, j := range x.jobs[min(len(done), len(x.jobs)):] { // of what was not done, the least delay
		if at := x.series.Begin.Add(j.At); within(at) {
			out.add(k.Now().Sub(at)-j.Cost, j.Cost)
		}
	}
	for _, p := range k.Periods(x.path) {
		if quota := o.limit(x.series, x.series.LimitAt(p.To)); within(p.To) && quota > 0 {
			out.above += max(0, p.Used-quota)
		}
	}
	for _, write := range k.Writes() {
		if write.Granted > 0 && !write.Foreign && write.Group.Path == x.path && within(write.At) {
			out.refills++
		}
	}
}

func (o *outcome) add(delay, work time.Duration) {
	o.late = append(o.late, sample{max(0, delay), work})
}

// percentile is the delay that so much of the work did not exceed.
func percentile(list []sample, part float64) time.Duration {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b sample) int { return int(a.delay - b.delay) })
	total := time.Duration(0)
	for _, s := range list {
		total += s.work
	}
	at := time.Duration(part * float64(total))
	for _, s := range list {
		if at -= s.work; at <= 0 {
			return s.delay
		}
	}
	return 0
}
