package kube

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
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

// DefaultNames are one in the agent's own namespace, "" for none, and that of ACK in kube-system. Whoever can make a
// namespace must not be able to set the policy. So a namespace that may not exist is not among them: those of
// Koordinator have to be named, as the chart does where their namespace exists.
func DefaultNames(own string) Names {
	names := Names{{"kube-system", "ack-slo-config"}}
	if own != "" {
		names = append(Names{{own, "slo-controller-config"}}, names...)
	}
	return names
}

// OwnNamespace is the namespace of the pod that this process is in, "" where it is in none (client-go's
// rest.InClusterConfig reads the token beside it).
func OwnNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Options are what a Discoverer is made of.
type Options struct {
	API    API
	Node   string
	Names  Names
	Groups Groups
	// Bandwidth reads the limit of a group.
	Bandwidth func(group string) (cpu.Bandwidth, error)
	// Own and Tenants are what this node's own file says; Configure replaces them.
	Own     strategy.Node
	Tenants config.Tenants
	// Changed is called with the strategy of the node, whenever it changes.
	Changed func(strategy.Node)
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

	// order is held while something is learned, and taken before mu. Only its holder changes what mu guards, and holds
	// both for that. So texts are parsed, and reported, without the lock that a turn of the agent waits for.
	order   sync.Mutex
	mirrors mirrors
	texts   map[string]string // by key of a ConfigMap: what was read last

	making sync.Mutex // held while a snapshot is made, and taken before mu

	mu       sync.Mutex      // held for no longer than it takes to look something up, or to change it
	pods     map[string]*pod // by UID on the node
	labels   map[string]string
	found    bool           // this node, at the API server
	seen     map[query]bool // whose first list was received
	maps     map[ConfigMap]*corev1.ConfigMap
	config   config.Kubernetes
	node     strategy.Node
	badKeys  map[string][]*config.Rejected // by key of a ConfigMap: of its text that was read last
	rejected int64                         // fields, since the start
	dirty    bool                          // something is known that is not in the snapshot
	snapshot
}

// New makes a Discoverer. Until Run has received the first lists from the API server, no pod is burst.
func New(o Options) *Discoverer {
	d := &Discoverer{Options: o, wake: make(chan struct{}, 1), events: newEventRecorder(o), pods: map[string]*pod{},
		seen: map[query]bool{}, maps: map[ConfigMap]*corev1.ConfigMap{}, texts: map[string]string{},
		badKeys: map[string][]*config.Rejected{}, node: o.Own, mirrors: newMirrors(o.Node),
		config: config.Kubernetes{Own: o.Tenants, Tenants: config.NoExtraCores()}}
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
			d.change(func() { d.seen[q] = true })
			return true
		})
	}}
}

// taker returns the functions that store and drop an object of a resource. Both say whether anything changed.
func (d *Discoverer) taker(r Resource) (put, drop func(any) bool) {
	switch r {
	case Pods:
		return func(o any) bool { d.putPod(o.(*corev1.Pod)); return true }, func(o any) bool {
			return d.dropPod(o.(*corev1.Pod))
		}
	case Nodes: // one that is deleted is made again under the same name; its pods live on meanwhile
		return func(o any) bool { return d.putNode(o.(*corev1.Node)) }, func(any) bool { return false }
	}
	name := func(m *corev1.ConfigMap) ConfigMap { return ConfigMap{m.Namespace, m.Name} }
	return func(o any) bool {
			m := o.(*corev1.ConfigMap)
			d.change(func() { d.maps[name(m)] = m })
			return true
		}, func(o any) bool {
			d.change(func() { delete(d.maps, name(o.(*corev1.ConfigMap))) })
			return true
		}
}

// change changes what mu guards.
func (d *Discoverer) change(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// forget drops what a new list no longer has.
func (d *Discoverer) forget(q query, list []any) {
	switch q.resource {
	case Pods:
		alive := map[string]bool{}
		for _, o := range list {
			alive[string(o.(*corev1.Pod).UID)] = true
		}
		d.change(func() { maps.DeleteFunc(d.pods, func(_ string, p *pod) bool { return !alive[p.about.UID] }) })
		maps.DeleteFunc(d.mirrors.claims, func(uid, _ string) bool { return !alive[uid] })
		slices.SortStableFunc(list, func(a, b any) int { // of two pods that claim the same the older counts
			return a.(*corev1.Pod).CreationTimestamp.Compare(b.(*corev1.Pod).CreationTimestamp.Time)
		})
	case ConfigMaps:
		d.change(func() { delete(d.maps, ConfigMap{q.namespace, q.name}) })
	}
}

// ready says whether every resource that a strategy depends on has been listed at least once.
func (d *Discoverer) ready() bool {
	return !slices.ContainsFunc(d.queries(), func(q query) bool { return !d.seen[q] })
}

// Configure replaces what this node's own file says.
func (d *Discoverer) Configure(own strategy.Node, tenants config.Tenants) {
	d.learn(func() bool { d.change(func() { d.Own, d.config.Own = own, tenants }); return true })
}

// Announce calls Changed with the strategy of the node, for a receiver that may have missed earlier calls.
func (d *Discoverer) Announce() {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	now := d.node
	d.mu.Unlock()
	d.Changed(now)
}

// learn applies a change. It parses, and calls Changed, without the lock that a turn of the agent takes, and in the
// order of the changes.
func (d *Discoverer) learn(take func() bool) {
	d.order.Lock()
	defer d.order.Unlock()
	if !take() {
		return
	}
	was, now := d.node, d.Own
	if d.ready() {
		d.readConfigMaps() // all of them: what is absent before the first lists is not known to be so
		now = d.config.Node(d.Own, d.labels)
	}
	d.change(func() { d.node, d.dirty = now, true })
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
