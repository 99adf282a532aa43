package kube

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/config"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestCutsAreShown: what a pod asks for in vain is in the status as long as it asks,
// and an Event on the pod says it once.
func TestCutsAreShown(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a", "b"))
	pod := web(`{"policy": "auto", "cfsQuotaBurstPercent": 900}`)
	pod.Labels = map[string]string{"alibabacloud.com/qosClass": "LSR"}
	pod.Annotations["plimsoll/exclusive"] = "true"
	w.given(node(nil), pod)
	c := w.pod(0).Containers[0]
	if c.Strategy.CFSQuotaBurstPercent != 300 || c.Strategy.Policy != strategy.None || c.Class != workload.ClassLS ||
		c.Exclusive != workload.ExclusiveByClass {
		t.Errorf("%+v", c)
	}
	const bound, fence = "what the pod has without its annotation", "the namespace is not in exclusiveNamespaces"
	want := []config.Cut{{Object: "Pod default/web", Key: "alibabacloud.com/qosClass", Asked: "LSR",
		Given: "LS without burst", Bound: fence},
		{Object: "Pod default/web", Key: "koordinator.sh/cpuBurst", Field: "cfsQuotaBurstPercent", Asked: "900",
			Given: "300", Bound: bound},
		{Object: "Pod default/web", Key: "plimsoll/exclusive", Asked: "true", Given: "no exclusive CPUs", Bound: fence}}
	if diff := cmp.Diff(want, w.d.Status().Cuts); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var events []string
	for _, c := range want {
		events = append(events, "CPUBurstCut Pod default/web "+c.String())
	}
	got := w.waiting()
	slices.Sort(got)
	slices.Sort(events)
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("Events: -want +got\n%s", diff)
	}
	allowed := configMap("koordinator-system", "slo-controller-config", "plimsoll-tenants",
		`{"exclusiveNamespaces": ["default"], "annotationMaxima": [{"namespaces": ["default"], "cfsQuotaBurstPercent": 1000}]}`)
	w.given(node(nil), pod, allowed)
	c = w.pod(0).Containers[0]
	if c.Strategy.CFSQuotaBurstPercent != 900 || c.Strategy.Policy != strategy.Auto || c.Class != workload.ClassLSR ||
		c.Exclusive != workload.ExclusiveYes {
		t.Errorf("allowed: %+v", c)
	}
	if left := w.d.Status().Cuts; len(left) != 0 {
		t.Errorf("allowed, and cuts are still %v", left)
	}
}

// TestTenantsOfTheNodesFile: without a ConfigMap the file of the node counts, from the start and when it is read again.
func TestTenantsOfTheNodesFile(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	w.given(node(nil), web(`{"policy": "auto", "cfsQuotaBurstPercent": 900}`))
	for text, want := range map[string]int64{"[{namespaces: [default], cfsQuotaBurstPercent: 600}]": 600, "[]": 300} {
		f, err := config.Parse("f", []byte("tenants: {extraCoresPerNode: 2, annotationMaxima: "+text+"}"))
		if err != nil {
			t.Fatal(err)
		}
		w.d.Configure(f.Node(), f.Tenants()) // the pod stays as it is
		extra := w.d.node.Extra
		if got := w.pod(0).Containers[0].Strategy.CFSQuotaBurstPercent; got != want || extra.PerNode.CPUs != 2 {
			t.Errorf("%s: %d, want %d; %+v", text, got, want, extra)
		}
		if cuts := w.d.Status().Cuts; len(cuts) != 1 || cuts[0].Given != fmt.Sprint(want) {
			t.Errorf("%s: cuts %v", text, cuts)
		}
	}
}

// TestBoundsThatCannotBeRead: an agent that starts beside a bad text of bounds raises nothing until it is mended. One
// that knew them keeps the last good ones. Without a ConfigMap there are none.
func TestBoundsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	node := node(nil)
	for _, c := range []struct {
		text string
		want strategy.Bound
	}{
		{"{", strategy.Bound{Set: true}},
		{`{"extraCoresPerNode": "16"}`, strategy.Bound{Set: true}},
		{`{"extraCoresPerNode": 16}`, strategy.Bound{Set: true, CPUs: 16}},
		{`{"extraCoresPerNode": "32"}`, strategy.Bound{Set: true, CPUs: 16}},
		{"", strategy.Bound{}},
		{"{", strategy.Bound{}},
	} {
		w.given(node, configMap("koordinator-system", "slo-controller-config", "plimsoll-tenants", c.text))
		w.d.Configure(strategy.Node{}, config.Tenants{})
		if got := w.d.node.Extra.PerNode; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.text, got, c.want)
		}
	}
	bare := newWorld(t)
	bare.given(node)
	bare.d.Configure(strategy.Node{}, config.Tenants{})
	if got := bare.d.node.Extra; got.Bounded() {
		t.Errorf("without a ConfigMap: %+v", got)
	}
}

// TestARequestOfZeroIsNoReservation: what the node can spare is shared by request, and a limit is not one.
func TestARequestOfZeroIsNoReservation(t *testing.T) {
	for request, want := range map[string]float64{"0": 2.0 / 1024, "100m": 0.1} {
		w := newWorld(t)
		w.groups.set(group("u1", "a"))
		pod := web(`{"policy": "auto"}`)
		pod.Spec.Containers[0].Resources.Requests = cpuIs(request)
		w.given(node(nil), pod)
		if got := w.pod(0).Containers[0].Request; got != want {
			t.Errorf("request %s: %v, want %v", request, got, want)
		}
	}
}

// TestOnlyInitContainersAreLimited: a limit of an init container bounds nothing of the main ones,
// and the pod is not burst.
func TestOnlyInitContainersAreLimited(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	pod := web(`{"policy": "auto"}`)
	pod.Spec.InitContainers = []corev1.Container{box("i", "", "4")}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources.Limits = nil
	}
	w.given(node(nil), pod)
	if c := w.pod(0).Containers[0]; c.Strategy.Policy != strategy.None || len(w.d.Status().Cuts) != 1 {
		t.Errorf("%+v, cuts %v", c.Strategy, w.d.Status().Cuts)
	}
}

// TestBoundsAreReported by an Event on the pod of the group, and once.
func TestBoundsAreReported(t *testing.T) {
	whole, bare := group("u1", "a"), group("u1", "a")
	bare.ID = workload.ID{} // its group has no limit
	for _, p := range []workload.Pod{whole, bare} {
		w := newWorld(t)
		w.groups.set(p)
		w.given(node(nil), web(""))
		w.pod(0)
		for range 2 {
			w.d.Bounded("/kubepods/burstable/podu1/"+id("a")+"/init.scope", "extraCoresPerPod keeps it from more")
			w.d.Bounded("/system.slice/x.service", "not a pod's")
		}
		want := []string{"CPUBurstCut Pod default/web extraCoresPerPod keeps it from more"}
		if diff := cmp.Diff(want, w.waiting()); diff != "" {
			t.Errorf("%q: %s", p.Path, diff)
		}
	}
}

// TestBorrowedNames: a user who owns a group gives those below it the names of another's pod and container. They have
// nothing of that pod.
func TestBorrowedNames(t *testing.T) {
	w := newWorld(t)
	own, borrowed := group("u1", "a"), group("u1", "a")
	borrowed.Path, borrowed.Delegated = "/user.slice/user-1000.slice"+own.Path, true
	borrowed.Containers[0].Path = borrowed.Path + "/" + id("a")
	bare := workload.Pod{Containers: borrowed.Containers, Delegated: true} // the pod's group has no limit
	w.groups.set(own, borrowed, bare)
	pod := web(`{"policy": "auto"}`)
	pod.Labels = map[string]string{"koordinator.sh/qosClass": "LS"}
	w.given(node(nil), pod)
	if p := w.pod(0); p.Name != "default/web" || p.Containers[0].Strategy.Policy != strategy.Auto {
		t.Errorf("the pod: %+v", p)
	}
	for i := 1; i <= 2; i++ {
		if p := w.pod(i); p.Namespace != "" || p.Request != 0 || p.Declared != nil ||
			p.Containers[0].Strategy.Policy != strategy.None || p.Containers[0].Class != workload.ClassNone {
			t.Errorf("the user's: %+v", p)
		}
	}
	w.d.Foreign(borrowed.Path, "the user wrote it")
	w.d.Foreign(borrowed.Containers[0].Path, "the user wrote it")
	w.d.Foreign(own.Containers[0].Path, "another program wrote it")
	if diff := cmp.Diff([]string{"CPULimitForeignWriter Pod default/web another program wrote it"},
		w.waiting()); diff != "" {
		t.Errorf("Events: -want +got\n%s", diff)
	}
}
