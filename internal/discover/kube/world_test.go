package kube

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const ms = time.Millisecond

// server is client-go's tracker of objects as an API server that can go away. The fake clientset on top of it brings
// every group of the API.
type server struct {
	clienttesting.ObjectTracker
	mu         sync.Mutex
	away       error
	watches    []watch.Interface
	asked      map[string]int  // "list pods", "watch nodes" ...
	namespaces map[string]bool // in which ConfigMaps were read
}

func newServer(objects ...runtime.Object) *server {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	s := &server{ObjectTracker: clienttesting.NewObjectTracker(scheme, decoder), asked: map[string]int{},
		namespaces: map[string]bool{}}
	for _, o := range objects {
		if err := s.Add(o); err != nil {
			panic(err)
		}
	}
	return s
}

func called(resource string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(resource)
}

// IsWatchListSemanticsUnSupported makes reflectors list, as the tracker cannot stream a list.
func (*server) IsWatchListSemanticsUnSupported() bool { return true }

func (s *server) ask(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[what]++
	return s.away
}

// read is ask, for a resource.
func (s *server) read(verb string, r Resource, ns string) error {
	if r == ConfigMaps {
		s.mu.Lock()
		s.namespaces[ns] = true
		s.mu.Unlock()
	}
	return s.ask(verb + " " + string(r))
}

// leave has the server go away, and its watches end, or come back (nil).
func (s *server) leave(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
	if err != nil {
		for _, w := range s.watches {
			w.Stop()
		}
		s.watches = nil
	}
}

func (s *server) List(_ context.Context, r Resource, ns string, o metav1.ListOptions) (runtime.Object, error) {
	if err := s.read("list", r, ns); err != nil {
		return nil, err
	}
	kind := map[Resource]string{Pods: "Pod", Nodes: "Node", ConfigMaps: "ConfigMap"}[r]
	list, err := s.ObjectTracker.List(called(string(r)), corev1.SchemeGroupVersion.WithKind(kind), ns)
	if err != nil {
		return nil, err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var some []runtime.Object
	for _, x := range all {
		if chosen(x, o.FieldSelector) {
			some = append(some, x)
		}
	}
	return list, meta.SetList(list, some)
}

func (s *server) Watch(_ context.Context, r Resource, ns string, o metav1.ListOptions) (watch.Interface, error) {
	if err := s.read("watch", r, ns); err != nil {
		return nil, err
	}
	w, err := s.ObjectTracker.Watch(called(string(r)), ns, o)
	if err != nil {
		return nil, err
	}
	w = watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if chosen(e.Object, o.FieldSelector) {
			return e, true
		}
		ended := e.Type == watch.Modified // it may have been chosen before, and an API server takes it back
		e.Type = watch.Deleted
		return e, ended
	})
	s.mu.Lock()
	s.watches = append(s.watches, w)
	s.mu.Unlock()
	return w, nil
}

// chosen is what the tracker does not do: field selectors.
func chosen(o runtime.Object, selector string) bool {
	set := fields.Set{}
	switch x := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"], set["status.phase"] = x.Spec.NodeName, string(x.Status.Phase)
	case *corev1.Node:
		set["metadata.name"] = x.Name
	case *corev1.ConfigMap:
		set["metadata.name"] = x.Name
	}
	return fields.ParseSelectorOrDie(selector).Matches(set)
}

func (s *server) CreateEvent(ctx context.Context, e *corev1.Event) error {
	if err := s.ask("event"); err != nil {
		return err
	}
	return s.Create(called("events"), e, e.Namespace)
}

// events are those in a namespace; "" stands for all.
func (s *server) events(ns string) ([]corev1.Event, error) {
	list, err := s.ObjectTracker.List(called("events"), corev1.SchemeGroupVersion.WithKind("Event"), ns)
	if err != nil {
		return nil, err
	}
	return list.(*corev1.EventList).Items, nil
}

var errAway = errors.New("connection refused")

// groups stands for a cgroupfs.Scanner.
type groups struct {
	mu      sync.Mutex
	pods    []workload.Pod
	touched []string
	wake    chan struct{}
}

func (g *groups) Pods() ([]workload.Pod, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pods, nil
}
func (g *groups) Touched() []string             { t := g.touched; g.touched = nil; return t }
func (g *groups) Wake() <-chan struct{}         { return g.wake }
func (g *groups) Counts() (rescans, lost int64) { return 3, 1 }
func (g *groups) set(pods ...workload.Pod)      { g.mu.Lock(); g.pods = pods; g.mu.Unlock() }

// world is a Discoverer with all that it knows.
type world struct {
	t      *testing.T
	server *server
	groups *groups
	disk   map[string]cpu.Bandwidth
	node   chan strategy.Node
	d      *Discoverer
}

// names are the ConfigMaps of Koordinator and ACK, as an administrator names them.
func names() Names {
	return Names{{"koordinator-system", "slo-controller-config"}, {"kube-system", "ack-slo-config"},
		{"koordinator-system", "ack-slo-pod-config"}}
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	w := &world{t: t, server: newServer(objects...), groups: &groups{wake: make(chan struct{}, 1)},
		disk: map[string]cpu.Bandwidth{},
		node: make(chan strategy.Node, 100)}
	w.d = New(Options{API: w.server, Node: "n1", Names: names(), Groups: w.groups, Own: strategy.DefaultNode(),
		Bandwidth: func(g string) (cpu.Bandwidth, error) {
			if b, ok := w.disk[g]; ok {
				return b, nil
			}
			return cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms}, nil
		},
		Changed: func(s strategy.Node) { w.node <- s }, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	return w
}

// run starts the Discoverer, and waits until everything was listed once.
func (w *world) run() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.d.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// soon waits until a condition is true.
func (w *world) soon(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(2 * ms) {
		if time.Now().After(end) {
			w.t.Fatalf("never: %s; status %+v", what, w.d.Status())
		}
	}
}

// given gives all objects to the Discoverer without an API server.
func (w *world) given(objects ...runtime.Object) {
	for _, q := range w.d.queries() {
		var list []any
		for _, o := range objects {
			switch x := o.(type) {
			case *corev1.Pod:
				if q.resource == Pods {
					list = append(list, x)
				}
			case *corev1.Node:
				if q.resource == Nodes {
					list = append(list, x)
				}
			case *corev1.ConfigMap:
				if q.resource == ConfigMaps && q.namespace == x.Namespace && q.name == x.Name {
					list = append(list, x)
				}
			}
		}
		_ = w.d.store(q).Replace(list, "")
	}
}

// events are those that were made, as "Reason object message".
func (w *world) events() []string {
	list, err := w.server.events("")
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, e := range list {
		lines = append(lines,
			e.Reason+" "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name+" "+e.Message)
	}
	return lines
}

// waiting are the queued Events, in the same form.
func (w *world) waiting() []string {
	var lines []string
	for _, e := range w.d.events.waiting {
		lines = append(lines,
			e.Reason+" "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name+" "+e.Message)
	}
	return lines
}

// rejected are object and field of what is rejected now.
func (w *world) rejected() []string {
	var list []string
	for _, r := range w.d.Status().Rejected {
		list = append(list, r.Object+" "+r.Field)
	}
	return list
}

func (w *world) pod(i int) workload.Pod {
	w.t.Helper()
	list, err := w.d.Pods()
	if err != nil || len(list) <= i {
		w.t.Fatalf("pod %d of %d, %v", i, len(list), err)
	}
	return list[i]
}

// id is a container's id that is easy to distinguish from others.
func id(c string) string { return strings.Repeat(c, 64) }

// group is a pod's group with containers in it, as a Scanner finds it.
func group(uid string, containers ...string) workload.Pod {
	dir := "/kubepods/burstable/pod" + uid
	p := workload.Pod{ID: workload.ID{Path: dir, Inode: 1}, Name: "pod " + uid}
	for i, c := range containers {
		p.Containers = append(p.Containers,
			workload.Container{ID: workload.ID{Path: dir + "/" + id(c), Inode: uint64(i + 2)}, Name: c,
				Runtime: "containerd", Strategy: strategy.Default()})
	}
	return p
}

func cpuIs(s string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s)}
}

// box is a container of a spec; "" leaves a field out.
func box(name, request, limit string) corev1.Container {
	c := corev1.Container{Name: name, Image: "image:" + name}
	if request != "" {
		c.Resources.Requests = cpuIs(request)
	}
	if limit != "" {
		c.Resources.Limits = cpuIs(limit)
	}
	return c
}

func runs(name, letter string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + id(letter)}
}

// web is the published example's pod: one container "apache" of four CPUs, its id all of letter a.
func web(annotation string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID("u1")}}
	if annotation != "" {
		p.Annotations = map[string]string{"koordinator.sh/cpuBurst": annotation}
	}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{box("apache", "4", "4")}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{runs("apache", "a")}
	return p
}

func node(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1-uid", Labels: labels}}
}

func configMap(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Data: map[string]string{key: text, "colocation-config": "{not json"}}
}
