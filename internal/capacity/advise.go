package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/hint"
	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// Question is what advice is asked for.
type Question struct {
	Containers                   int
	Limit                        float64 // CPUs of each; 0: its own, or the node's / the number of containers
	Target, Throttled, MostBurst float64
	Seed                         uint64
	Periods                      int64 // of each simulation; 0: the default
}

// Advise runs the model.
func (q Question) Advise(d *Recordings) (report.Advice, error) {
	d.own = q.Limit == 0
	n, _, err := d.node(Case{Containers: q.Containers})
	if err != nil {
		return report.Advice{}, err
	}
	a := report.Advice{Schema: report.AdviceSchema, Target: q.Target, Tolerated: q.Throttled, MostBurst: q.MostBurst,
		CPUs: d.cpus, Count: q.Containers, Committed: n.Committed() / n.Capacity, Period: d.period, Periods: d.least(),
		Stable: true}
	if len(d.list) == 1 {
		err = q.adviseKind(&a, d, n)
	} else {
		err = q.adviseNode(&a, d, n)
	}
	a.Conditions = q.conditions(a, d)
	return a, err
}

// adviseKind runs the model for many containers like one.
func (q Question) adviseKind(a *report.Advice, d *Recordings, n loadline.Node) error {
	quota := n.Containers[0].Quota
	got, err := loadline.Advise(loadline.Question{Demand: d.list[0].demand, Quota: quota, Pods: q.Containers,
		Capacity: n.Capacity, Target: a.Target,
		Throttled: a.Tolerated, MostBurst: a.MostBurst, Seed: q.Seed, Periods: q.Periods})
	if errors.Is(err, loadline.ErrUnstable) {
		a.Stable = false
		return q.adviseNode(a, d, n)
	}
	if err != nil {
		return err
	}
	a.Stable = !got.Saturated
	a.Largest, a.Granted, a.Miss, a.MissCI, a.TurningRho = report.Quotas(
		got.Largest), got.Granted, got.Miss.Value, [2]float64{got.Miss.Low, got.Miss.High}, report.Correlation(
		got.TurningRho)
	if a.Stable {
		a.MostPods, a.Sure = &got.MostPods, &got.Sure
	}
	a.Kinds = []report.AdvisedKind{{Name: d.list[0].name, Count: q.Containers, Limit: quota * d.cpus,
		Mean: d.list[0].demand.Mean() * d.cpus, Saturated: got.Saturated,
		ThrottledWithout: got.Without.ThrottledWithout, ThrottledWith: got.With.ThrottledWith,
		DelayWithout: got.Without.DelayWithout, DelayWith: got.With.DelayWith,
		Needed: got.Needed, Enough: got.Enough, LimitAlone: got.Limit * d.cpus, LimitBurst: got.LimitBurst * d.cpus,
		Saving: got.Saving * d.cpus}}
	return nil
}

// adviseNode runs the model for a node of several kinds of containers.
func (q Question) adviseNode(a *report.Advice, d *Recordings, n loadline.Node) error {
	o := loadline.Options{Seed: q.Seed, Periods: q.Periods}
	largest, err := loadline.LargestBurst(n, a.Target, o)
	if errors.Is(err, loadline.ErrUnstable) {
		a.Stable = false
	} else if err != nil {
		return err
	}
	a.Largest, a.Granted = report.Quotas(largest), min(largest, a.MostBurst)
	if a.Stable {
		burst, _, err := d.node(Case{Containers: q.Containers, Burst: a.Granted})
		if err != nil {
			return err
		}
		r, err := loadline.Simulate(burst, o)
		if err != nil {
			return err
		}
		a.Miss, a.MissCI = r.Miss.Value, [2]float64{r.Miss.Low, r.Miss.High}
		rho, err := loadline.TurningRho(burst, a.Target, o)
		if err != nil {
			return err
		}
		a.TurningRho = report.Correlation(rho)
	}
	for i, t := range d.list[:min(len(d.list), q.Containers)] {
		k, err := q.kind(a, n.Containers[i])
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		k.Name, k.Count = t.name, (q.Containers-i+len(d.list)-1)/len(d.list)
		k.Limit, k.Mean, k.LimitAlone, k.LimitBurst =
			k.Limit*d.cpus, k.Mean*d.cpus, k.LimitAlone*d.cpus, k.LimitBurst*d.cpus
		k.Saving = float64(k.Count) * (k.Limit - k.LimitBurst)
		a.Kinds = append(a.Kinds, k)
	}
	return nil
}

// kind is what one container needs, in the unit of the node.
func (Question) kind(a *report.Advice, c loadline.Container) (report.AdvisedKind, error) {
	r := c.Demand.(*loadline.Recording) // tapes have nothing else
	k := report.AdvisedKind{Limit: c.Quota, Mean: r.Mean()}
	var err1, err2 error
	k.LimitAlone, err1 = loadline.LimitFor(r, a.Tolerated, 0)
	k.LimitBurst, err2 = loadline.LimitFor(r, a.Tolerated, a.Granted)
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
	k.ThrottledWithout, k.ThrottledWith, k.DelayWithout, k.DelayWith = h.Throttled(0), h.Throttled(burst), h.Delay(
		0), h.Delay(burst)
	k.Needed = h.Enough(a.Tolerated) / c.Quota
	k.Enough = k.Needed <= a.Granted
	return k, nil
}

// conditions are those without which the advice says nothing.
func (Question) conditions(a report.Advice, d *Recordings) []string {
	list := []string{"demand stays as it was recorded; what the recording has not seen is not in these figures",
		"the demands of different containers have nothing to do with each other, but for what is said of correlation"}
	if len(d.list) > d.files {
		list[1] = "containers that were recorded together keep what their demands have to do with each other; the " +
			"others have nothing to do with each other"
	}
	if a.Committed > 1+1e-9 {
		list = append(list, "the limits add up to more than the node: even without bursts a container may get less "+
			"than its limit, and the model says less about that")
	}
	list = append(list,
		"a container can use its whole quota at once: one with fewer threads than CPUs gains less from a burst")
	if a.MostBurst == 1 {
		list = append(list, "mainline kernels take no burst above the quota; --kernel-burst says otherwise of yours")
	}
	return append(list, "another limit or number of containers is another risk: repeat this with --limit and --cgroups")
}

// Busy are the containers that have run at all: of the others on a node there is nothing to be said.
func (d *Recordings) Busy(all []trace.Series) ([]trace.Series, error) {
	var list []trace.Series
	for _, s := range all {
		if slices.ContainsFunc(s.Used, func(used float64) bool { return used > 0 }) {
			list = append(list, s)
			continue
		}
		d.notes = append(d.notes, fmt.Sprintf("%q is left out: it did not run while it was recorded", s.Name))
	}
	if len(list) == 0 {
		return nil, hint.With(errors.New("no container ran while it was recorded"),
			"record while they work, and longer: --for 10m")
	}
	return list, nil
}

// Fit is how many containers with such a limit fit on the node, or as many as were recorded.
func (d *Recordings) Fit(limit float64) (int, error) {
	if len(d.list) > 1 {
		return len(d.list), nil
	}
	quota := d.list[0].limit
	if limit > 0 {
		quota = limit / d.cpus
	}
	if math.IsInf(quota, 1) {
		return 0, hint.With(fmt.Errorf("%s was recorded without a limit", d.list[0].name), "give --limit or --cgroups")
	}
	if 1/quota > MostContainers {
		return 0, hint.With(fmt.Errorf("more than %d containers with limits of %g CPUs fit", MostContainers,
			quota*d.cpus), "give a larger --limit, or --cgroups")
	}
	return max(1, int(1/quota+1e-9)), nil
}
