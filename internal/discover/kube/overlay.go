package kube

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// kubernetes is what cgroupfs calls the maker of a pod's group.
const kubernetes = "kubernetes"

// snapshot is the last one, and what was learned when it was made.
type snapshot struct {
	groups  []workload.Pod
	shown   []workload.Pod
	awaited map[string]bool // groups in which a limit is to come: none was there
	matched int             // pods that have a group and that the API server listed
	cuts    []config.Cut    // what pods ask for in vain
}

// Pods are the groups' containers with what Kubernetes says about them. The same slice is given again until something
// changes; it must not be written to.
//
// A new snapshot needs the files of the groups, and makes Events. So it is made from a copy of what is known, without
// the lock that others wait for. What is learned meanwhile is in the next one.
func (d *Discoverer) Pods() ([]workload.Pod, error) {
	d.making.Lock()
	defer d.making.Unlock()
	groups, err := d.Groups.Pods()
	o, last := d.outdated(groups)
	if o == nil {
		return last, err
	}
	shown := o.lay(groups)
	if last != nil && slices.EqualFunc(shown, last, workload.Pod.Equal) {
		shown = last
	}
	d.change(func() { d.snapshot = snapshot{groups, shown, o.awaited, o.matched, o.cuts} })
	return shown, err
}

// outdated is what is known now, if the last snapshot is another one's; nil: it is not.
func (d *Discoverer) outdated(groups []workload.Pod) (o *overlay, last []workload.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dirty && d.shown != nil && workload.Same(groups, d.groups) {
		return nil, d.shown
	}
	d.dirty = false
	return &overlay{d: d, ready: d.ready(), pods: maps.Clone(d.pods), labels: d.labels, node: d.node, config: d.config,
		awaited: map[string]bool{}}, d.shown
}

// Touched lists the groups that were written. Where an awaited limit may have arrived, the snapshot is renewed.
func (d *Discoverer) Touched() []string {
	d.making.Lock() // the snapshot that is being made may have seen no limit yet
	defer d.making.Unlock()
	groups := d.Groups.Touched()
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(groups, func(g string) bool { return d.awaited[g] }) {
		d.dirty = true
		d.poke()
	}
	return groups
}

// overlay is what Kubernetes says about groups, and what is found out while it is laid over them.
type overlay struct {
	d      *Discoverer
	ready  bool
	pods   map[string]*pod
	labels map[string]string
	node   strategy.Node
	config config.Kubernetes

	awaited map[string]bool
	matched int
	cuts    []config.Cut
}

// lay lays what is known over the groups.
func (o *overlay) lay(base []workload.Pod) []workload.Pod {
	all := make([]workload.Pod, len(base))
	for i, p := range base {
		all[i] = p
		uid, ok := podOf(p)
		if !ok {
			continue
		}
		all[i].Containers = slices.Clone(p.Containers)
		known := o.pods[uid]
		if known == nil || !o.ready {
			for j := range all[i].Containers {
				c := &all[i].Containers[j]
				c.Strategy.Policy = strategy.None
				c.QOS = c.Class.QOS(o.node.Colocation)
			}
			continue
		}
		o.matched++
		o.layPod(&all[i], known)
	}
	slices.SortStableFunc(o.cuts, func(a, b config.Cut) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Field, b.Field))
	})
	return all
}

// podOf is the UID in the names of a pod's groups. The kubelet's are root's: a user who owns a group may name those
// below it after anybody's pod.
func podOf(p workload.Pod) (uid string, ok bool) {
	if p.Delegated {
		return "", false
	}
	group := p.Path
	if group == "" && len(p.Containers) > 0 {
		group = path.Dir(p.Containers[0].Path)
	}
	at := cgroupfs.Classify(group)
	return at.ID, at.Kind == cgroupfs.Pod && at.Runtime == kubernetes
}

func (o *overlay) layPod(p *workload.Pod, known *pod) {
	p.Name, p.Namespace, p.Own = known.name(), known.about.Namespace, known.own.to > 0
	if known.request > 0 {
		p.Request = known.request.cpus()
	}
	if p.Path != "" {
		p.Declared = o.declared(p.Declared, p.Path, known, known.limit)
	}
	asked, resizes := known.asked(), o.resizes(p, known)
	first := len(o.cuts)
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Paused = c.Paused || resizes
		given := o.config.Pod("Pod "+known.name(), o.config.Container(c.Strategy, o.labels), asked)
		o.cut(known, first, given.Cuts)
		c.Strategy = given.Strategy
		if config.OptsOut(known.annotations[config.ReceiptsAnnotation]) {
			c.Strategy.Receipts = 0
		}
		if given.Class != workload.ClassNone {
			c.Class = given.Class
		}
		c.QOS = c.Class.QOS(o.node.Colocation)
		if c.Class == workload.ClassLS {
			var cut []config.Cut
			c.QOS, cut = config.QOSOf("Pod "+known.name(), c.QOS, known.qos)
			o.cut(known, first, cut)
		}
		if given.Exclusive != workload.ExclusiveByClass {
			c.Exclusive = given.Exclusive
		}
		is, named := known.containers[cgroupfs.Classify(c.Path).ID]
		if c.Sandbox = !named; named {
			o.layContainer(c, known, is)
		}
	}
}

func (o *overlay) layContainer(c *workload.Container, known *pod, is container) {
	c.Name = known.name() + "/" + is.name
	switch {
	case is.request > 0:
		c.Request = is.request.cpus()
	case is.limit.to > 0: // a request of 0: its limit is no reservation
		c.Request = workload.LeastRequest
	}
	limit := is.limit
	if limit.to == 0 { // the kubelet gives it the pod's own (kuberuntime_container_linux.go, getCPULimit)
		limit = known.own
	}
	c.Declared = o.declared(c.Declared, c.Path, known, limit)
	c.Started = c.Started || is.started
}

// declared is the declared limit of a group. The runtime's record is exact, and is used where it exists, unless a
// resize is pending: then the limit in the pod's status is declared until the status confirms the new one. The value in
// the group confirms nothing: it may be a raise by the agent. What systemd says is no such record: it is rounded, and
// out of date while systemd does not answer. A group without a quota gets none, whatever the spec says.
func (o *overlay) declared(runtimes *workload.Declared, group string, known *pod, limit course) *workload.Declared {
	if limit.to == 0 {
		return runtimes
	}
	now, err := o.d.Bandwidth(group)
	if err != nil || !now.Limited() {
		o.awaited[group] = true
		return runtimes
	}
	resizes := known.resizes(now.Period)
	if runtimes != nil && !runtimes.Rounded && !resizes {
		return runtimes
	}
	declared := &workload.Declared{Bandwidth: limit.to.bandwidth(now.Period), Source: "spec of pod " + known.name()}
	if is := limit.is.bandwidth(now.Period); resizes && is != declared.Bandwidth {
		declared.Bandwidth, declared.Next = is, declared.Bandwidth
	}
	return declared
}

// resizes says whether the limit of a container of a pod is being changed.
func (o *overlay) resizes(p *workload.Pod, known *pod) bool {
	if !known.resizes(0) {
		return false
	}
	for _, c := range p.Containers {
		if b, err := o.d.Bandwidth(c.Path); err == nil && b.Limited() {
			return known.resizes(b.Period)
		}
	}
	return true
}

// cut keeps what a pod asks for in vain, and reports it by Events, each once. The pod's own begin at first.
func (o *overlay) cut(p *pod, first int, list []config.Cut) {
	for _, c := range list {
		if !slices.Contains(o.cuts[first:], c) { // of each container the same
			o.cuts = append(o.cuts, c)
			o.d.events.warn(p.about, reasonCut, c.String())
		}
	}
}

// Bounded reports that a bound of the administrator's on CPUs above limits keeps a group from more, by an Event on the
// group's pod.
func (d *Discoverer) Bounded(group, what string) { d.report(group, reasonCut, what) }

// Foreign reports another program that writes a group's limit, by an Event on the group's pod.
func (d *Discoverer) Foreign(group, what string) { d.report(group, reasonForeign, what) }

// report makes an Event on the pod of a group.
func (d *Discoverer) report(group, reason, what string) {
	if p := d.podAbove(group); p != nil {
		d.events.warn(p.about, reason, what)
	}
}

// podAbove is the pod of the last snapshot that a group is in; nil: there is none.
func (d *Discoverer) podAbove(group string) *pod {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.groups {
		in := func(above string) bool { return above != "" && (group == above || workload.Under(group, above)) }
		has := func(c workload.Container) bool { return in(c.Path) || in(c.Scope.Path) }
		if in(p.Path) || slices.ContainsFunc(p.Containers, has) {
			uid, _ := podOf(p)
			return d.pods[uid]
		}
	}
	return nil
}
