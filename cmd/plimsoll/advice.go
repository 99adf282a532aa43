package main

import (
	"errors"
	"fmt"

	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
)

// advise runs the model.
func (f *adviseFlags) advise(d *tapes) (report.Advice, error) {
	if err := f.complete(d); err != nil {
		return report.Advice{}, err
	}
	n, _, err := d.node(scenario{cgroups: f.cgroups})
	if err != nil {
		return report.Advice{}, err
	}
	a := report.Advice{Schema: report.AdviceSchema, Target: float64(f.target), Tolerated: float64(f.throttled), MostBurst: float64(f.mostBurst),
		CPUs: d.cpus, Count: f.cgroups, Committed: n.Committed() / n.Capacity, Period: d.period, Periods: d.least(), Stable: true}
	if len(d.list) == 1 {
		err = f.adviseKind(&a, d, n)
	} else {
		err = f.adviseNode(&a, d, n)
	}
	a.Conditions = f.conditions(a, d)
	return a, err
}

// adviseKind runs the model for many containers like one.
func (f *adviseFlags) adviseKind(a *report.Advice, d *tapes, n loadline.Node) error {
	quota := n.Containers[0].Quota
	got, err := loadline.Advise(loadline.Question{Demand: d.list[0].demand, Quota: quota, Pods: f.cgroups, Capacity: n.Capacity, Target: a.Target,
		Throttled: a.Tolerated, MostBurst: a.MostBurst, Seed: f.seed, Periods: f.periods})
	if errors.Is(err, loadline.ErrUnstable) {
		a.Stable = false
		return f.adviseNode(a, d, n)
	}
	if err != nil {
		return err
	}
	a.Stable = !got.Saturated
	a.Largest, a.Granted, a.Miss, a.MissCI, a.TurningRho = report.Quotas(got.Largest), got.Granted, got.Miss.Value, [2]float64{got.Miss.Low, got.Miss.High}, got.TurningRho
	if a.Stable {
		a.MostPods, a.Sure = &got.MostPods, &got.Sure
	}
	a.Kinds = []report.AdvisedKind{{Name: d.list[0].name, Count: f.cgroups, Limit: quota * d.cpus, Mean: d.list[0].demand.Mean() * d.cpus, Saturated: got.Saturated,
		ThrottledWithout: got.Without.ThrottledWithout, ThrottledWith: got.With.ThrottledWith, DelayWithout: got.Without.DelayWithout, DelayWith: got.With.DelayWith,
		Needed: got.Needed, Enough: got.Enough, LimitAlone: got.Limit * d.cpus, LimitBurst: got.LimitBurst * d.cpus, Saving: got.Saving * d.cpus}}
	return nil
}

// adviseNode runs the model for a node of several kinds of containers.
func (f *adviseFlags) adviseNode(a *report.Advice, d *tapes, n loadline.Node) error {
	o := loadline.Options{Seed: f.seed, Periods: f.periods}
	largest, err := loadline.LargestBurst(n, a.Target, o)
	if errors.Is(err, loadline.ErrUnstable) {
		a.Stable = false
	} else if err != nil {
		return err
	}
	a.Largest, a.Granted = report.Quotas(largest), min(largest, a.MostBurst)
	if a.Stable {
		burst, _, err := d.node(scenario{cgroups: f.cgroups, burst: a.Granted})
		if err != nil {
			return err
		}
		r, err := loadline.Simulate(burst, o)
		if err != nil {
			return err
		}
		a.Miss, a.MissCI = r.Miss.Value, [2]float64{r.Miss.Low, r.Miss.High}
		if a.TurningRho, err = loadline.TurningRho(burst, a.Target, o); err != nil {
			return err
		}
	}
	for i, t := range d.list[:min(len(d.list), f.cgroups)] {
		k, err := f.kind(a, n.Containers[i])
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		k.Name, k.Count = t.name, (f.cgroups-i+len(d.list)-1)/len(d.list)
		k.Limit, k.Mean, k.LimitAlone, k.LimitBurst = k.Limit*d.cpus, k.Mean*d.cpus, k.LimitAlone*d.cpus, k.LimitBurst*d.cpus
		k.Saving = float64(k.Count) * (k.Limit - k.LimitBurst)
		a.Kinds = append(a.Kinds, k)
	}
	return nil
}

// kind is what one container needs, in the unit of the node.
func (f *adviseFlags) kind(a *report.Advice, c loadline.Container) (report.AdvisedKind, error) {
	r := c.Demand.(*loadline.Recording) // tapes have nothing else
	k := report.AdvisedKind{Limit: c.Quota, Mean: r.Mean()}
	var err1, err2 error
	k.LimitAlone, err1 = loadline.LimitFor(r, a.Tolerated, 0)
	k.LimitBurst, err2 = loadline.LimitFor(r, a.Tolerated, a.MostBurst)
	if err := errors.Join(err1, err2); err != nil {
		return k, err
	}
	h, err := loadline.NewHistory(r, c.Quota)
	if errors.Is(err, loadline.ErrUnstable) {
		k.Saturated = true
		return k, nil
	}
	if err != nil {
		return k, err
	}
	burst := a.Granted * c.Quota
	k.ThrottledWithout, k.ThrottledWith, k.DelayWithout, k.DelayWith = h.Throttled(0), h.Throttled(burst), h.Delay(0), h.Delay(burst)
	k.Needed = h.Enough(a.Tolerated) / c.Quota
	k.Enough = k.Needed <= a.Granted
	return k, nil
}

// conditions are those without which the advice says nothing.
func (f *adviseFlags) conditions(a report.Advice, d *tapes) []string {
	list := []string{"demand stays as it was recorded; what the recording has not seen is not in these figures",
		"the demands of different containers have nothing to do with each other, but for what is said of correlation"}
	if len(d.list) > d.files {
		list[1] = "containers that were recorded together keep what their demands have to do with each other; the others have nothing to do with each other"
	}
	if a.Committed > 1+1e-9 {
		list = append(list, "the limits add up to more than the node: even without bursts a container may get less than its limit, and the model says less about that")
	}
	list = append(list, "a container can use its whole quota at once: one with fewer threads than CPUs gains less from a burst")
	if a.MostBurst == 1 {
		list = append(list, "mainline kernels take no burst above the quota; --kernel-burst says otherwise of yours")
	}
	return append(list, "another limit or number of containers is another risk: repeat this with --limit and --cgroups")
}
