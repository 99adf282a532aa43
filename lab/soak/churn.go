package main

import (
	"context"
	"slices"
	"time"
)

// churn does so much in a second until the context ends.
func (o *owner) churn(ctx context.Context, rate float64) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := o.act(); err != nil {
			return err
		}
	}
}

func (o *owner) act() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.carryOut(time.Now()); err != nil {
		return err
	}
	if err := o.poke(); err != nil {
		return err
	}
	p := o.pods[o.rng.IntN(len(o.pods))]
	switch a := choose(o.rng.Float64()); {
	case a == job:
		return o.job()
	case p.resizes(): // the next one then
		return nil
	case a == resize:
		o.resize(p)
	case a == restart:
		return o.restart(p)
	case a == replace:
		return o.replace(p)
	}
	return nil
}

// action is what the owner does next.
type action string

// The actions.
const (
	job     action = "job"     // in a busy container, which is throttled by it
	resize  action = "resize"  // of a container of a pod
	restart action = "restart" // of a container of a pod: its group goes, and another comes
	replace action = "replace" // of a pod: its groups go, and another pod comes
)

// choose takes a number from 0 to 1.
func choose(x float64) action {
	switch {
	case x < 0.5:
		return job
	case x < 0.75:
		return resize
	case x < 0.92:
		return restart
	default:
		return replace
	}
}

// poke wakes the processes of some pods, all in turn: what is kept of a group that has run is kept of all of them,
// not only of those that the present agent saw start.
func (o *owner) poke() error {
	for range 1 + len(o.pods)/pokes {
		o.poked++
		for _, c := range o.pods[o.poked%len(o.pods)].containers {
			if err := c.process.Write("0"); err != nil {
				return err
			}
		}
	}
	return nil
}

// pokes is how many actions it takes until all were woken.
const pokes = 25

// busy are the containers that do jobs.
func (o *owner) busy() (list []*container, pods []*pod) {
	for _, p := range o.pods {
		for _, c := range p.containers {
			if c.busy {
				list, pods = append(list, c), append(pods, p)
			}
		}
	}
	return list, pods
}

// job gives one of the busy containers a job. Every third time the limit of one is changed, of one that is raised if
// there is any: on a full node there are few.
func (o *owner) job() error {
	list, pods := o.busy()
	if len(list) == 0 {
		return nil
	}
	i := o.rng.IntN(len(list))
	o.counts.Jobs++
	if o.rng.IntN(3) == 0 {
		changed := i
		for k := range list {
			if at := (i + k) % len(list); o.raised(list[at]) && !pods[at].resizes() {
				changed = at
				break
			}
		}
		if !pods[changed].resizes() {
			o.resizeOne(pods[changed], list[changed])
		}
	}
	return list[i].process.Write(rounds)
}

func (o *owner) resize(p *pod) { o.resizeOne(p, p.containers[o.rng.IntN(len(p.containers))]) }

// raised says whether the file of a container holds another quota than the kubelet's.
func (o *owner) raised(c *container) bool {
	held, err := o.groups.Tree().Bandwidth(c.group)
	return err == nil && held.Quota != c.written.quota()
}

// resizeOne changes the spec; the kubelet follows a moment later.
func (o *owner) resizeOne(p *pod, c *container) {
	if o.raised(c) {
		o.counts.AtRaise++
	}
	c.spec, c.settled = o.anyLimit(c.spec), time.Time{}
	p.asked = time.Now()
	p.due = p.asked.Add(time.Duration(o.rng.Int64N(int64(300 * time.Millisecond))))
	o.api.Put(p.listed())
}

func (o *owner) restart(p *pod) error {
	c := p.containers[o.rng.IntN(len(p.containers))]
	if err := o.stopContainer(c); err != nil {
		return err
	}
	if err := o.startContainer(p, c); err != nil {
		return err
	}
	o.counts.Restarts++
	o.confirm(p)
	return nil
}

func (o *owner) replace(p *pod) error {
	for _, c := range p.containers {
		if err := o.stopContainer(c); err != nil {
			return err
		}
	}
	if err := o.groups.Remove(p.group); err != nil {
		return err
	}
	o.api.Drop(p.uid)
	o.pods = slices.DeleteFunc(o.pods, func(other *pod) bool { return other == p })
	o.counts.Replaced++
	return o.addPod(len(p.containers), p.containers[0].busy)
}
