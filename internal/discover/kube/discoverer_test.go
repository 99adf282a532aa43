package kube

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"plimsoll/internal/logbook"
	"plimsoll/internal/strategy"
)

func (w *world) policy() strategy.Policy {
	list, err := w.d.Pods()
	if err != nil || len(list) == 0 {
		return "no pod"
	}
	return list[0].Containers[0].Strategy.Policy
}

// A change at the API server reaches the containers without another call, and the pod gets an Event.
func TestWatches(t *testing.T) {
	w := newWorld(t, node(map[string]string{"pool": "web"}))
	w.groups.set(group("u1", "a"))
	w.run()
	w.soon("an API server that answers", func() bool { s := w.d.Status(); return s.Reachable && s.Ready })
	if w.policy() != strategy.None {
		t.Fatal("burst before the pod is known")
	}
	other := web(`{"policy": "auto"}`)
	other.Name, other.UID, other.Spec.NodeName = "elsewhere", "u9", "n2"
	pod := web(`{"policy": "auto"}`)
	w.ok(w.server.Create(called("pods"), other, "default"), w.server.Create(called("pods"), pod, "default"))
	w.within("a new pod", strategy.Auto)
	if n := w.d.Status().Pods; n != 1 {
		t.Errorf("%d pods, want those of this node only", n)
	}
	pod.Annotations = map[string]string{"alibabacloud.com/cpuBurst": `{"policy": "cpuBurstOnly"}`}
	w.ok(w.server.Update(called("pods"), pod, "default"))
	w.within("another annotation", strategy.CPUBurstOnly)
	w.soon("an Event", func() bool { return len(w.events()) == 1 })
	pod.Annotations = nil
	w.ok(w.server.Update(called("pods"), pod, "default"))
	w.within("no annotation", strategy.None)
	w.ok(w.server.Delete(called("pods"), "default", "web"))
	w.soon("no pod", func() bool { return w.d.Status().Pods == 0 })
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	want := map[string]int{"list pods": 1, "list nodes": 1, "list configmaps": 3, "watch pods": 1, "watch nodes": 1,
		"watch configmaps": 3, "event": 1}
	if diff := cmp.Diff(want, w.server.asked); diff != "" {
		t.Errorf("requests: %s", diff)
	}
}

// TestPodsThatAreOver are not kept: neither those that were over before, nor one that ends. No quota bounds how many of
// them a tenant has on the node.
func TestPodsThatAreOver(t *testing.T) {
	over := func(name string, phase corev1.PodPhase) *corev1.Pod {
		p := web(`{"policy": "no"}`)
		p.Name, p.UID, p.Status.Phase = name, types.UID("u-"+name), phase
		return p
	}
	w := newWorld(t, node(nil), over("rejected", corev1.PodFailed), over("done", corev1.PodSucceeded),
		over("runs", corev1.PodRunning))
	w.run()
	w.soon("all that there is", func() bool { return w.d.Status().Ready })
	if s := w.d.Status(); s.Pods != 1 || s.RejectedNow != 1 {
		t.Errorf("%d pods, %d faults; want those of the one that runs", s.Pods, s.RejectedNow)
	}
	w.ok(w.server.Update(called("pods"), over("runs", corev1.PodFailed), "default"))
	w.soon("no pod", func() bool { s := w.d.Status(); return s.Pods == 0 && s.RejectedNow == 0 })
}

// ok fails the test if there is an error.
func (w *world) ok(errs ...error) {
	w.t.Helper()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

// within waits for a policy as long as a change may take.
func (w *world) within(what string, want strategy.Policy) {
	w.t.Helper()
	begun := time.Now()
	w.soon(what, func() bool { return w.policy() == want })
	if took := time.Since(begun); took > time.Second {
		w.t.Errorf("%s took %v", what, took)
	}
}

// So do the node's labels and ConfigMaps.
func TestWatchesConfigMaps(t *testing.T) {
	w := newWorld(t, node(map[string]string{"pool": "web"}), web(""))
	w.groups.set(group("u1", "a"))
	w.run()
	w.soon("all that there is", func() bool { return w.d.Status().Ready })
	m := configMap("kube-system", "ack-slo-config", "cpu-burst-config",
		`{"nodeStrategies": [{"nodeSelector": {"matchLabels": {"pool": "web"}}, "policy": "cfsQuotaBurstOnly"}]}`)
	w.ok(w.server.Create(called("configmaps"), m, "kube-system"))
	w.within("a ConfigMap", strategy.CFSQuotaBurstOnly)
	w.ok(w.server.Update(called("nodes"), node(nil), ""))
	w.within("other labels", strategy.None)
	m.Data["cpu-burst-config"] = `{"clusterStrategy": {"policy": "auto"}}`
	w.ok(w.server.Update(called("configmaps"), m, "kube-system"))
	w.within("a ConfigMap that changes", strategy.Auto)
	w.ok(w.server.Delete(called("configmaps"), "kube-system", m.Name))
	w.within("a ConfigMap that goes", strategy.None)
}

// The API server goes away: what it said last stands, and what it says when it is back counts.
func TestAPIServerAway(t *testing.T) {
	w := newWorld(t, node(nil), web(`{"policy": "auto"}`))
	w.groups.set(group("u1", "a"))
	w.run()
	w.soon("the strategy", func() bool { return w.policy() == strategy.Auto })
	w.server.leave(errAway)
	w.soon("a broken line", func() bool { return !w.d.Status().Reachable })
	if s := w.d.Status(); s.Fault != errAway.Error() || !s.Ready || s.Pods != 1 || w.policy() != strategy.Auto {
		t.Errorf("%+v, policy %s", s, w.policy())
	}
	w.d.Foreign("/kubepods/burstable/podu1", "said while it is away")
	w.ok(w.server.Update(called("pods"), web(`{"policy": "cpuBurstOnly"}`), "default"))
	w.server.leave(nil)
	w.soon("what it says when it is back", func() bool {
		return w.policy() == strategy.CPUBurstOnly && w.d.Status().Reachable
	})
	w.soon("the Event that waited", func() bool { return len(w.events()) == 1 })
}

// older is an API server before 1.32: it refuses to stream a list (ValidateListOptions, without the gate WatchList).
type older struct{ *server }

func (older) IsWatchListSemanticsUnSupported() bool { return false }

func (s older) Watch(ctx context.Context, r Resource, ns string, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return s.server.Watch(ctx, r, ns, o)
}

// TestListsAreNotStreamed: that an API server streams no lists is no fault of the line.
func TestListsAreNotStreamed(t *testing.T) {
	w := newWorld(t, node(nil), web(`{"policy": "auto"}`))
	log := &logbook.Book{}
	w.d.API, w.d.Log = older{w.server}, slog.New(slog.NewTextHandler(log, nil))
	w.groups.set(group("u1", "a"))
	w.run()
	w.soon("the strategy", func() bool { return w.policy() == strategy.Auto && w.d.Status().Reachable })
	if strings.Contains(log.String(), "does not answer") {
		t.Error(log.String())
	}
}

// It starts without an API server, and does nothing to pods until there is one.
func TestStartsWithoutAPIServer(t *testing.T) {
	w := newWorld(t, node(nil), web(`{"policy": "auto"}`))
	w.groups.set(group("u1", "a"))
	w.server.leave(errAway)
	w.run()
	w.soon("a broken line", func() bool { return w.d.Status().Fault != "" })
	if w.policy() != strategy.None || w.d.Status().Ready {
		t.Errorf("policy %s, %+v", w.policy(), w.d.Status())
	}
	w.server.leave(nil)
	w.soon("the strategy", func() bool { return w.policy() == strategy.Auto })
}

// A ConfigMap and a pod that were deleted while no watch ran are dropped.
func TestWhatWentMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	w.given(node(nil), web(""), configMap("kube-system", "ack-slo-config", "cpu-burst-config",
		`{"clusterStrategy": {"policy": "auto"}}`))
	if w.policy() != strategy.Auto {
		t.Fatal(w.policy())
	}
	for name, m := range w.d.maps {
		if len(m.Data) != 1 {
			t.Errorf("%s is kept with %d keys", name, len(m.Data))
		}
	}
	w.given(node(nil), web(""))
	if w.policy() != strategy.None {
		t.Error("the ConfigMap stays")
	}
	w.given(node(nil))
	if n := w.d.Status().Pods; n != 0 {
		t.Errorf("%d pods stay", n)
	}
}

func TestWakes(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.soon("the line", func() bool { return w.d.Status().Ready })
	drain := func() {
		for {
			select {
			case <-w.d.Wake():
			case <-time.After(2 * afterPeriod):
				return
			}
		}
	}
	drain()
	w.groups.wake <- struct{}{}
	select {
	case <-w.d.Wake():
	case <-time.After(5 * time.Second):
		t.Error("not woken by the groups")
	}
	w.given(node(nil), web(""))
	select {
	case <-w.d.Wake():
	case <-time.After(5 * time.Second):
		t.Error("not woken by a pod")
	}
	select {
	case <-w.d.Wake():
	case <-time.After(5 * time.Second):
		t.Error("not woken again for a write that had to wait")
	}
	drain()
	put, _ := w.d.taker(Nodes)
	if w.d.learn(func() bool { return put(node(nil)) }); len(w.d.Wake()) != 0 {
		t.Error("woken by a node whose labels are the same")
	}
	if rescans, lost := w.d.Counts(); rescans != 3 || lost != 1 {
		t.Error(rescans, lost)
	}
}

func TestLine(t *testing.T) {
	a, b := query{Pods, "", "n1"}, query{ConfigMaps, "kube-system", "ack-slo-config"}
	var calls []error
	l := newLine([]query{a, b}, func(err error) { calls = append(calls, err) })
	refused, forbidden := errors.New("refused"), errors.New("forbidden")
	for i, step := range []struct {
		q     query
		err   error
		state lineState
		fault error
		calls int
	}{
		{a, nil, untried, nil, 0}, {a, context.Canceled, untried, nil, 0}, {b, nil, whole, nil, 1},
		{b, refused, broken, refused, 2},
		{a, &url.Error{Op: "Get", URL: "http://a", Err: forbidden}, broken, forbidden, 2},
		{b, nil, broken, forbidden, 2}, {a, nil, whole, nil, 3}, {a, refused, broken, refused, 4},
	} {
		l.answered(step.q, step.err)
		if state, fault := l.now(); state != step.state || fault != step.fault || len(calls) != step.calls {
			t.Errorf("%d: %d %v, calls %v", i, state, fault, calls)
		}
	}
	if diff := cmp.Diff([]string{"", "refused", "", "refused"}, texts(calls)); diff != "" {
		t.Error(diff)
	}
	if a.String() != "pods n1" || b.String() != "configmaps kube-system/ack-slo-config" {
		t.Error(a, b)
	}
}

func texts(errs []error) []string {
	var list []string
	for _, err := range errs {
		if err == nil {
			list = append(list, "")
		} else {
			list = append(list, err.Error())
		}
	}
	return list
}

// TestDefaultNames: whoever makes a namespace sets nothing. Both namespaces exist, and are their administrators'.
func TestDefaultNames(t *testing.T) {
	for own, want := range map[string]Names{"": {{"kube-system", "ack-slo-config"}},
		"plimsoll":    {{"plimsoll", "slo-controller-config"}, {"kube-system", "ack-slo-config"}},
		"kube-system": {{"kube-system", "slo-controller-config"}, {"kube-system", "ack-slo-config"}}} {
		if diff := cmp.Diff(want, DefaultNames(own)); diff != "" {
			t.Errorf("%q: %s", own, diff)
		}
	}
}

// TestOnlyNamedConfigMapsAreRead: a ConfigMap of the same name in another namespace sets nothing, and is not asked for.
func TestOnlyNamedConfigMapsAreRead(t *testing.T) {
	const policy = `{"clusterStrategy": {"policy": "auto"}}`
	w := newWorld(t, node(nil), web(""), configMap("koordinator-system", "slo-controller-config", "cpu-burst-config",
		policy), configMap("tenant", "ack-slo-config", "cpu-burst-config", policy))
	w.d = New(Options{API: w.server, Node: "n1", Names: DefaultNames("plimsoll"), Groups: w.groups,
		Own: strategy.DefaultNode(), Bandwidth: w.d.Bandwidth,
		Changed: func(strategy.Node) {}, Log: w.d.Log, Now: time.Now})
	w.groups.set(group("u1", "a"))
	w.run()
	w.soon("all that there is", func() bool { return w.d.Status().Ready })
	if w.policy() != strategy.None {
		t.Error("a namespace that nobody named sets the policy")
	}
	w.ok(w.server.Create(called("configmaps"),
		configMap("plimsoll", "slo-controller-config", "cpu-burst-config", policy), "plimsoll"))
	w.within("the ConfigMap of the release", strategy.Auto)
	want := []ConfigMapRead{{ConfigMap{"plimsoll", "slo-controller-config"}, true},
		{ConfigMap{"kube-system", "ack-slo-config"}, false}}
	if diff := cmp.Diff(want, w.d.Status().ConfigMaps); diff != "" {
		t.Error(diff)
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if diff := cmp.Diff(map[string]bool{"plimsoll": true, "kube-system": true}, w.server.namespaces); diff != "" {
		t.Errorf("ConfigMaps were read in: %s", diff)
	}
}

// TestNoSuchNode: a name that no node has is told of once everything was listed, and no longer when the node is there.
func TestNoSuchNode(t *testing.T) {
	w := newWorld(t)
	if s := w.d.Status(); s.NoNode {
		t.Errorf("before the first list: %+v", s)
	}
	w.given(web(""))
	if s := w.d.Status(); !s.Ready || !s.NoNode || s.Node != "n1" {
		t.Errorf("no node: %+v", s)
	}
	w.given(node(nil), web(""))
	if s := w.d.Status(); s.NoNode {
		t.Errorf("the node is there: %+v", s)
	}
}
