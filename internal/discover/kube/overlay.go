package kube

import (
	"path"
	"slices"

	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// kubernetes is what cgroupfs calls the maker of a pod's group.
const kubernetes = "kubernetes"

// snapshot is the last one, and what it was made of.
type snapshot struct {
	groups  []workload.Pod
	shown   []workload.Pod
	awaited map[string]bool // groups in which a limit is to come: none was there
	known   int             // pods that have a group and that the API server listed
}

// Pods are the groups' containers with what Kubernetes says about them. The same slice is given again until something
// changes; it must not be written to.
func (d *Discoverer) Pods() ([]workload.Pod, error) {
	groups, err := d.Groups.Pods()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dirty && d.shown != nil && workload.Same(groups, d.groups) {
		return d.shown, err
	}
	if now := d.lay(groups); d.shown == nil || !slices.EqualFunc(now, d.shown, workload.Pod.Equal) {
		d.shown = now
	}
	d.groups, d.dirty = groups, false
	return d.shown, err
}

// Touched lists the groups that were written. Where an awaited limit may have arrived, the snapshot is renewed.
func (d *Discoverer) Touched() []string {
	groups := d.Groups.Touched()
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(groups, func(g string) bool { return d.awaited[g] }) {
		d.dirty = true
		d.poke()
	}
	return groups
}

// lay lays what is known over the groups.
func (d *Discoverer) lay(base []workload.Pod) []workload.Pod {
	d.awaited, d.known = map[string]bool{}, 0
	shares, ready := d.shares(), d.ready()
	all := make([]workload.Pod, len(base))
	for i, p := range base {
		all[i] = p
		uid, ok := podOf(p)
		if !ok {
			continue
		}
		all[i].Containers = slices.Clone(p.Containers)
		known := d.pods[uid]
		if known == nil || !ready {
			for j := range all[i].Containers {
				c := &all[i].Containers[j]
				c.Strategy.Policy = strategy.None
				c.QOS = c.Class.QOS(d.node.Colocation)
			}
			continue
		}
		d.known++
		d.layPod(&all[i], known, shares)
	}
	return all
}

// podOf is the UID in the names of a pod's groups.
func podOf(p workload.Pod) (uid string, ok bool) {
	group := p.Path
	if group == "" && len(p.Containers) > 0 {
		group = path.Dir(p.Containers[0].Path)
	}
	at := cgroupfs.Classify(group)
	return at.ID, at.Kind == cgroupfs.Pod && at.Runtime == kubernetes
}

func (d *Discoverer) layPod(p *workload.Pod, known *pod, shares map[string]float64) {
	p.Name, p.Own = known.name(), known.own.to > 0
	if known.request > 0 {
		p.Request = known.request.cpus()
	}
	if p.Path != "" {
		p.Declared = d.declared(p.Declared, p.Path, known, known.limit)
	}
	asked := config.Asked{Annotated: known.annotated(), Patch: known.patch, Share: config.Share{
		Namespace: known.about.Namespace, PodCPUs: known.limits.cpus(), NamespaceCPUs: shares[known.about.Namespace]}}
	resizes := d.resizes(p, known)
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Paused = c.Paused || resizes
		var cut []*config.Rejected
		c.Strategy, cut = d.config.Pod("Pod "+known.name(), d.config.Node(c.Strategy, d.labels), asked)
		d.sayCut(known.about, cut)
		if known.class != workload.ClassNone {
			c.Class = known.class
		}
		c.QOS = c.Class.QOS(c.Strategy.Colocation)
		if c.Class == workload.ClassLS { // a pod cannot prefer itself to what its class gets
			c.QOS = known.qos.Over(c.QOS)
		}
		if known.exclusive != workload.ExclusiveByClass {
			c.Exclusive = known.exclusive
		}
		if is, ok := known.containers[cgroupfs.Classify(c.Path).ID]; ok {
			d.layContainer(c, known, is)
		}
	}
}

func (d *Discoverer) layContainer(c *workload.Container, known *pod, is container) {
	c.Name = known.name() + "/" + is.name
	if is.request > 0 {
		c.Request = is.request.cpus()
	}
	c.Declared = d.declared(c.Declared, c.Path, known, is.limit)
	c.Started = c.Started || is.started
}

// declared is the declared limit of a group. The runtime's record is exact, and is used where it exists, unless a
// resize is pending: then the limit in the pod's status is declared until the status confirms the new one. The value in
// the group confirms nothing: it may be a raise by the agent. A group without a quota gets none, whatever the spec
// says.
func (d *Discoverer) declared(runtimes *workload.Declared, group string, known *pod, limit course) *workload.Declared {
	if limit.to == 0 {
		return runtimes
	}
	now, err := d.Bandwidth(group)
	if err != nil || !now.Limited() {
		d.awaited[group] = true
		return runtimes
	}
	resizes := known.resizes(now.Period)
	if runtimes != nil && !resizes {
		return runtimes
	}
	declared := &workload.Declared{Bandwidth: limit.to.bandwidth(now.Period), Source: "spec of pod " + known.name()}
	if is := limit.is.bandwidth(now.Period); resizes && is != declared.Bandwidth {
		declared.Bandwidth, declared.Next = is, declared.Bandwidth
	}
	return declared
}

// resizes says whether a container of a pod is to have another limit than it has.
func (d *Discoverer) resizes(p *workload.Pod, known *pod) bool {
	if !known.resizes(0) {
		return false
	}
	for _, c := range p.Containers {
		if b, err := d.Bandwidth(c.Path); err == nil && b.Limited() {
			return known.resizes(b.Period)
		}
	}
	return true
}

// shares sums, by namespace, the limits of the pods that raise their quotas by an annotation.
func (d *Discoverer) shares() map[string]float64 {
	sums := map[string]milli{}
	for _, p := range d.pods {
		asked := config.Asked{Annotated: p.annotated(), Patch: p.patch, Share: config.Share{Namespace: p.about.Namespace}}
		if asked.Annotated && !p.ended && p.class.Burstable() && d.config.Unbounded(d.node, asked).Policy.Quota() {
			sums[p.about.Namespace] += p.limits
		}
	}
	cpus := map[string]float64{}
	for n, m := range sums {
		cpus[n] = m.cpus()
	}
	return cpus
}

// sayCut reports once which part of its annotation a pod does not get.
func (d *Discoverer) sayCut(about Object, cut []*config.Rejected) {
	for _, r := range cut {
		d.events.warn(about, reasonCut, r.Error())
	}
}

// Foreign reports another program that writes a group's limit, by an Event on the group's pod.
func (d *Discoverer) Foreign(group, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := group; at != "/" && at != "."; at = path.Dir(at) {
		place := cgroupfs.Classify(at)
		if p := d.pods[place.ID]; p != nil && place.Kind == cgroupfs.Pod {
			d.events.warn(p.about, reasonForeign, what)
			return
		}
	}
}
