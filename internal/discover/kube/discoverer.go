package kube

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Groups knows the control groups: a cgroupfs.Scanner.
type Groups interface {
	Pods() ([]workload.Pod, error)
	Touched() []string
	Wake() <-chan struct{}
	Counts() (rescans, lost int64)
}

// ConfigMap is the name of one.
type ConfigMap struct{ Namespace, Name string }

func (m ConfigMap) String() string { return m.Namespace + "/" + m.Name }

// Names are the ConfigMaps that are read. Of each key, the first that has it counts.
type Names []ConfigMap

// DefaultNames are those of Koordinator and ACK.
func DefaultNames() Names {
	return Names{{"koordinator-system", "slo-controller-config"}, {"kube-system", "ack-slo-config"}, {"koordinator-system", "ack-slo-pod-config"}}
}

// Options are what a Discoverer is made of.
type Options struct {
	API    API
	Node   string
	Names  Names
	Groups Groups
	// Bandwidth reads the limit of a group.
	Bandwidth func(group string) (cpu.Bandwidth, error)
	// Own is what this node's own file says; Configure replaces it.
	Own strategy.Strategy
	// Changed is called with the strategy of the node, whenever it changes.
	Changed func(strategy.Strategy)
	Log     *slog.Logger
	Now     func() time.Time
}

// afterPeriod is the delay of a second turn after a change. Of two writes to a group in one period the policy delays
// the second (each grants a quota), and the period is the kernel's default, 100 ms, or less.
const afterPeriod = 110 * time.Millisecond

// Discoverer knows the containers of this node, and their configuration in Kubernetes. Its methods may be called from
// several goroutines.
type Discoverer struct {
	Options
	wake   chan struct{}
	line   *line
	events *eventRecorder

	order sync.Mutex // of what is learned; taken before mu

	mu       sync.Mutex
	pods     map[string]*pod // by UID on the node
	labels   map[string]string
	seen     map[query]bool // whose first list was received
	maps     map[ConfigMap]*corev1.ConfigMap
	texts    map[string]string // by key of a ConfigMap: what was read last
	config   config.Kubernetes
	node     strategy.Strategy
	badKeys  map[string][]*config.Rejected // by key of a ConfigMap: of its text that was read last
	rejected int64                         // fields, since the start
	dirty    bool                          // something is known that is not in the snapshot
	snapshot
}

// New makes a Discoverer. Until Run has received the first lists from the API server, no pod is burst.
func New(o Options) *Discoverer {
	d := &Discoverer{Options: o, wake: make(chan struct{}, 1), events: newEventRecorder(o), pods: map[string]*pod{},
		seen: map[query]bool{}, maps: map[ConfigMap]*corev1.ConfigMap{}, texts: map[string]string{},
		badKeys: map[string][]*config.Rejected{}, node: o.Own}
	d.line = newLine(d.queries(), d.lineChanged)
	return d
}

// queries lists the resources that are read, one list and one watch each.
func (d *Discoverer) queries() []query {
	list := []query{{Pods, "", d.Node}, {Nodes, "", d.Node}}
	for _, n := range d.Names {
		list = append(list, query{ConfigMaps, n.Namespace, n.Name})
	}
	return list
}

// Run keeps up with the API server until the context ends.
func (d *Discoverer) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, q := range d.queries() {
		all.Go(func() { follow(ctx, d.API, q, d.store(q), d.line) })
	}
	all.Go(func() { d.events.run(ctx) })
	for {
		select {
		case <-ctx.Done():
			all.Wait()
			return nil
		case <-d.Groups.Wake():
			d.poke()
		}
	}
}

func (d *Discoverer) lineChanged(err error) {
	if err != nil {
		d.Log.Warn("the API server does not answer: what it said last stays in force", "error", err)
		return
	}
	d.Log.Info("the API server answers", "node", d.Node)
	d.events.again()
}

// store is where what a query finds goes.
func (d *Discoverer) store(q query) store {
	put, drop := d.taker(q.resource)
	one := func(take func(any) bool) func(any) {
		return func(o any) { d.learn(func() bool { return take(o) }) }
	}
	return store{put: one(put), drop: one(drop), replace: func(list []any) {
		d.learn(func() bool {
			d.forget(q, list)
			for _, o := range list {
				put(o)
			}
			d.seen[q] = true
			return true
		})
	}}
}

// taker returns the functions that store and drop an object of a resource. Both say whether anything changed.
func (d *Discoverer) taker(r Resource) (put, drop func(any) bool) {
	switch r {
	case Pods:
		return func(o any) bool { return d.putPod(o.(*corev1.Pod)) }, func(o any) bool { return d.dropPod(o.(*corev1.Pod)) }
	case Nodes: // one that is deleted is made again under the same name; its pods live on meanwhile
		return func(o any) bool {
			labels := o.(*corev1.Node).Labels
			changed := !maps.Equal(labels, d.labels)
			d.labels = labels
			return changed
		}, func(any) bool { return false }
	}
	name := func(m *corev1.ConfigMap) ConfigMap { return ConfigMap{m.Namespace, m.Name} }
	return func(o any) bool { m := trimConfigMap(o.(*corev1.ConfigMap)); d.maps[name(m)] = m; return true },
		func(o any) bool { delete(d.maps, name(o.(*corev1.ConfigMap))); return true }
}

// forget drops what a new list no longer has.
func (d *Discoverer) forget(q query, list []any) {
	switch q.resource {
	case Pods:
		alive := map[string]bool{}
		for _, o := range list {
			alive[string(o.(*corev1.Pod).UID)] = true
		}
		maps.DeleteFunc(d.pods, func(_ string, p *pod) bool { return !alive[p.about.UID] })
	case ConfigMaps:
		delete(d.maps, ConfigMap{q.namespace, q.name})
	}
}

// ready says whether every resource that a strategy depends on has been listed at least once.
func (d *Discoverer) ready() bool {
	return !slices.ContainsFunc(d.queries(), func(q query) bool { return !d.seen[q] })
}

// Configure replaces the strategy of this node's own file, and returns the strategy of the node.
func (d *Discoverer) Configure(own strategy.Strategy) strategy.Strategy {
	d.learn(func() bool { d.Own = own; return true })
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node
}

// Announce calls Changed with the strategy of the node, for a receiver that missed earlier calls.
func (d *Discoverer) Announce() {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	now := d.node
	d.mu.Unlock()
	d.Changed(now)
}

// learn applies a change. It calls Changed without the lock that a turn of the agent takes,
// and in the order of the changes.
func (d *Discoverer) learn(take func() bool) {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	if !take() {
		d.mu.Unlock()
		return
	}
	d.readConfigMaps()
	d.dirty = true
	was := d.node
	d.node = d.Own
	if d.ready() {
		d.node = d.config.Node(d.Own, d.labels)
	}
	now := d.node
	d.mu.Unlock()
	if now != was {
		d.Changed(now)
	}
	d.poke()
	time.AfterFunc(afterPeriod, d.poke)
}

func (d *Discoverer) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Wake has a value when something changed.
func (d *Discoverer) Wake() <-chan struct{} { return d.wake }

// Counts returns the rescans and lost events of the groups.
func (d *Discoverer) Counts() (rescans, lost int64) { return d.Groups.Counts() }
