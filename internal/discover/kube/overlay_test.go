package kube

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func autoStrategy() strategy.Strategy {
	s := strategy.Default()
	s.Policy = strategy.Auto
	return s
}

// A container has its pod's strategy as soon as its group is there, and its name, request and limit when the pod's
// status has its id.
func TestOverlay(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a", "b"), group("stranger", "c"),
		workload.Pod{Containers: []workload.Container{{ID: workload.ID{Path: "/lab/x"}, Strategy: autoStrategy()}}})
	pod := web(`{"policy": "auto"}`)
	pod.Labels = map[string]string{"koordinator.sh/qosClass": "LS"}
	w.given(node(nil), pod)
	p := w.pod(0)
	if p.Name != "default/web" || p.Request != 4 || p.Declared == nil ||
		p.Declared.Bandwidth != (cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms}) {
		t.Errorf("pod %+v, declared %+v", p, p.Declared)
	}
	a, b := p.Containers[0], p.Containers[1]
	if a.Name != "default/web/apache" || a.Request != 4 || a.Class != workload.ClassLS ||
		a.Strategy != autoStrategy() || a.Paused ||
		a.Sandbox || a.Declared == nil || a.Declared.Source != "spec of pod default/web" ||
		a.Declared.Bandwidth.Quota != 400*ms {
		t.Errorf("apache %+v, declared %+v", a, a.Declared)
	}
	if b.Name != "b" || b.Request != 0 || b.Class != workload.ClassLS || b.Strategy != autoStrategy() ||
		b.Declared != nil || !b.Sandbox {
		t.Errorf("container without an id: %+v", b)
	}
	if c := w.pod(1).Containers[0]; c.Strategy.Policy != strategy.None {
		t.Errorf("a pod that the API server has not sent: %+v", c)
	}
	if c := w.pod(2).Containers[0]; c.Strategy != autoStrategy() || c.Sandbox {
		t.Errorf("a group outside of pods: %+v", c)
	}
	if s := w.d.Status(); s.Pods != 1 || s.Matched != 1 || !s.Ready {
		t.Errorf("%+v", s)
	}
}

// The paths of the systemd driver, v1 and v2, and of a kubelet's own --cgroup-root.
func TestOverlayOfEveryDriver(t *testing.T) {
	for _, dir := range []string{"/kubepods/podu-1", "/kubepods/besteffort/podu-1",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice",
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podu_1.slice",
		"/kind/kubelet/kubepods/burstable/podu-1"} {
		for _, name := range []string{id("a"), "cri-containerd-" + id("a") + ".scope", "crio-" + id("a")} {
			w := newWorld(t)
			w.groups.set(workload.Pod{ID: workload.ID{Path: dir},
				Containers: []workload.Container{{ID: workload.ID{Path: dir + "/" + name}}}})
			pod := web(`{"policy": "auto"}`)
			pod.UID = "u-1"
			w.given(node(nil), pod)
			if c := w.pod(0).Containers[0]; c.Name != "default/web/apache" || c.Strategy.Policy != strategy.Auto {
				t.Errorf("%s/%s: %+v", dir, name, c)
			}
		}
	}
}

// A static pod has another UID on its node than its mirror has at the API server.
func TestOverlayOfStaticPods(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("hash", "a"))
	pod := web(`{"policy": "auto"}`)
	mirror(pod, "hash")
	w.given(node(nil), pod)
	if c := w.pod(0).Containers[0]; c.Name != "default/web/apache" {
		t.Errorf("%+v", c)
	}
	watched := w.pods()
	impostor := pod.DeepCopy()
	impostor.Name, impostor.UID, impostor.OwnerReferences = "impostor", "u9", nil
	watched.put(impostor)
	if c := w.pod(0).Containers[0]; c.Name != "default/web/apache" {
		t.Errorf("of a pod that no node has made: %+v", c)
	}
	watched.drop(impostor)
	again := pod.DeepCopy()
	again.UID = "u2"
	watched.put(again)
	if watched.drop(pod); w.pod(0).Containers[0].Name != "default/web/apache" {
		t.Error("the old mirror's end takes the new one away")
	}
	if watched.drop(again); w.d.Status().Pods != 0 {
		t.Error("the mirror stays")
	}
}

// pods is where the watch of pods puts its objects.
func (w *world) pods() store {
	w.t.Helper()
	i := slices.IndexFunc(w.d.queries(), func(q query) bool { return q.resource == Pods })
	s := w.d.store(w.d.queries()[i])
	return store{put: func(o any) { _ = s.Add(o) }, drop: s.drop}
}

// mirror makes a pod that of a static one, as the kubelet does.
func mirror(pod *corev1.Pod, hash string) {
	pod.Annotations[staticHash], pod.Annotations[staticMirror] = hash, hash
	controls := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1-uid",
		Controller: &controls}}
}

// A pod may claim to mirror another one. Its annotations do not count for the other, whichever pod comes first.
func TestOverlayOfImpostors(t *testing.T) {
	for name, lie := range map[string]func(*corev1.Pod){
		"hash":            func(p *corev1.Pod) { p.Annotations[staticHash] = "u1" },
		"hash and mirror": func(p *corev1.Pod) { mirror(p, "u1"); p.OwnerReferences = nil },
		"all":             func(p *corev1.Pod) { mirror(p, "u1") },
	} {
		for _, first := range []bool{true, false} {
			w := newWorld(t)
			w.groups.set(group("u1", "a"))
			victim, impostor := web(`{"policy": "auto"}`), web(`{"policy": "none"}`)
			impostor.Name, impostor.UID = "impostor", "u9"
			lie(impostor)
			if w.given(node(nil), victim, impostor); first {
				w = newWorld(t)
				w.groups.set(group("u1", "a"))
				w.given(node(nil), impostor, victim)
			}
			if c := w.pod(0).Containers[0]; c.Name != "default/web/apache" || c.Strategy.Policy != strategy.Auto {
				t.Errorf("%s, first %v: %+v", name, first, c)
			}
			w.pods().drop(impostor)
			if c := w.pod(0).Containers[0]; c.Strategy.Policy != strategy.Auto {
				t.Errorf("%s, first %v: the end of the other takes it away: %+v", name, first, c)
			}
		}
	}
}

// Until everything was listed once, nothing is burst: a ConfigMap might forbid it.
func TestNothingBeforeAllIsKnown(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	for i, q := range w.d.queries() {
		var list []any
		if q.resource == Pods {
			list = []any{web(`{"policy": "auto"}`)}
		}
		if c := w.pod(0).Containers[0]; c.Strategy.Policy != strategy.None || w.d.Status().Ready {
			t.Errorf("burst after %d of the first lists: %+v", i, c)
		}
		_ = w.d.store(q).Replace(list, "")
	}
	if c := w.pod(0).Containers[0]; c.Strategy.Policy != strategy.Auto {
		t.Errorf("%+v", c)
	}
}

// A group without a quota does not get one declared (cpuCFSQuota off, exclusive CPUs):
// restore --to-spec would write it.
func TestNoLimitWhereNoneIs(t *testing.T) {
	w := newWorld(t)
	g := group("u1", "a")
	path := g.Containers[0].Path
	w.groups.set(g)
	w.disk[path] = cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}
	w.disk[g.Path] = cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}
	w.given(node(nil), web(""))
	if p := w.pod(0); p.Declared != nil || p.Containers[0].Declared != nil {
		t.Errorf("declared %+v and %+v", p.Declared, p.Containers[0].Declared)
	}
	w.disk[path] = cpu.Bandwidth{Quota: 40 * ms, Period: 10 * ms} // the runtime sets it up
	w.groups.touched = []string{"/elsewhere"}
	w.d.Touched()
	if w.pod(0).Containers[0].Declared != nil {
		t.Error("read again though nothing was written")
	}
	w.groups.touched = []string{path}
	w.d.Touched()
	if c := w.pod(0).Containers[0]; c.Declared == nil ||
		c.Declared.Bandwidth != (cpu.Bandwidth{Quota: 40 * ms, Period: 10 * ms}) {
		t.Errorf("declared %+v", c.Declared)
	}
}

// The runtime's record is exact, and is used until a resize is pending. Then all of the pod stays at its limits,
// without bursts, so that the kernel takes the owner's writes,
// and the new limit is declared when the status confirms it.
func TestAResizeKeepsTheLimit(t *testing.T) {
	for to, quota := range map[string]time.Duration{"1": 100 * ms, "5": 500 * ms} {
		w := newWorld(t)
		g := group("u1", "a", "b")
		runc := &workload.Declared{Bandwidth: cpu.Bandwidth{Quota: 399 * ms, Period: 100 * ms}, Source: "runc state"}
		g.Containers[0].Declared = runc
		w.groups.set(g)
		pod := web(`{"policy": "auto"}`)
		pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: cpuIs("4")}
		w.given(node(nil), pod)
		if c := w.pod(0).Containers[0]; c.Declared != runc || c.Paused {
			t.Errorf("%+v, declared %+v", c, c.Declared)
		}
		asked := pod.DeepCopy()
		asked.Spec.Containers[0].Resources.Limits = cpuIs(to)
		w.given(node(nil), asked)
		next := workload.Declared{Bandwidth: cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms},
			Next: cpu.Bandwidth{Quota: quota, Period: 100 * ms}, Source: "spec of pod default/web"}
		wants := func(when string) {
			t.Helper()
			p := w.pod(0)
			if c := p.Containers[0]; *c.Declared != next || *p.Declared != next || !c.Paused ||
				!p.Containers[1].Paused {
				t.Errorf("%s: %+v, declared %+v, pod %+v", when, c, c.Declared, p.Declared)
			}
		}
		wants("on its way")
		w.writes(g.Containers[0].Path, quota)
		wants("the container's is written")
		w.writes(g.Path, quota)
		wants("the pod's is written")
		asked.Status.ContainerStatuses[0].Resources.Limits = cpuIs(to)
		w.given(node(nil), asked)
		if p := w.pod(0); p.Containers[0].Paused || p.Declared.Bandwidth.Quota != quota ||
			p.Declared.Next != (cpu.Bandwidth{}) {
			t.Errorf("done, and still without bursts: %+v", p)
		}
	}
}

// writes changes the quota of a group, as an owner does.
func (w *world) writes(group string, quota time.Duration) {
	w.disk[group] = cpu.Bandwidth{Quota: quota, Period: 100 * ms}
	w.groups.touched = []string{group}
	w.d.Touched()
}

// The same slice until something changes: to the agent another slice means a change.
func TestSameSnapshot(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	w.given(node(nil), web(""))
	first, _ := w.d.Pods()
	w.given(node(nil), web("")) // another list of the same
	if again, _ := w.d.Pods(); &again[0] != &first[0] {
		t.Error("another snapshot, though nothing is new")
	}
	w.given(node(nil), web(`{"policy": "auto"}`))
	if again, _ := w.d.Pods(); &again[0] == &first[0] || first[0].Containers[0].Strategy.Policy != strategy.None {
		t.Error("the snapshot was written to")
	}
	w.groups.set(group("u1", "a", "b"))
	if again, _ := w.d.Pods(); len(again[0].Containers) != 2 {
		t.Error("a new group is not seen")
	}
}

// By annotation, namespace, node and cluster, live, in that order. A bad field keeps its last value, and is reported on
// its object once.
func TestConfigurationLive(t *testing.T) {
	const slo, ack = "cpu-burst-config", "cpu-burst"
	cluster := configMap("kube-system", "ack-slo-config", slo, `{"clusterStrategy": {"policy": "cpuBurstOnly", "cfsQuotaBurstPercent": 200, "sharePoolThresholdPercent": 70},
		"nodeStrategies": [{"name": "web", "nodeSelector": {"matchLabels": {"pool": "web"}}, "cfsQuotaBurstPercent": 400}]}`)
	namespaces := configMap("koordinator-system", "ack-slo-pod-config", ack, `{"disabledNamespaces": ["default"]}`)
	with := func(edit func(*strategy.Strategy)) strategy.Strategy {
		s := strategy.Strategy{Policy: strategy.CPUBurstOnly, CPUBurstPercent: 1000, CFSQuotaBurstPercent: 200,
			CFSQuotaBurstPeriodSeconds: -1, StartupSeconds: 60, SharePoolThresholdPercent: 70}
		edit(&s)
		return s
	}
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	step := func(name string, want strategy.Strategy, objects ...runtime.Object) {
		t.Helper()
		w.given(objects...)
		if diff := cmp.Diff(want, w.pod(0).Containers[0].Strategy); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	step("cluster", with(func(*strategy.Strategy) {}), node(nil), web(""), cluster)
	step("node", with(func(s *strategy.Strategy) { s.CFSQuotaBurstPercent = 400 }),
		node(map[string]string{"pool": "web"}), web(""), cluster)
	step("namespace", with(func(s *strategy.Strategy) { s.Policy = strategy.None }), node(nil), web(""), cluster,
		namespaces)
	step("annotation", with(func(s *strategy.Strategy) { s.Policy, s.CFSQuotaBurstPercent = strategy.Auto, 150 }),
		node(nil), web(`{"policy": "auto", "cfsQuotaBurstPercent": 150}`), cluster, namespaces)
	bad := web(`{"policy": "on", "cfsQuotaBurstPercent": 99}`)
	step("a bad annotation", with(func(s *strategy.Strategy) { s.Policy, s.CFSQuotaBurstPercent = strategy.Auto, 150 }),
		node(nil), bad, cluster, namespaces)
	step("and again", with(func(s *strategy.Strategy) { s.Policy, s.CFSQuotaBurstPercent = strategy.Auto, 150 }),
		node(nil), bad, cluster, namespaces)
	if diff := cmp.Diff([]string{"Pod default/web policy", "Pod default/web cfsQuotaBurstPercent"},
		w.rejected()); diff != "" {
		t.Errorf("rejected now, -want +got\n%s", diff)
	}
	broken := cluster.DeepCopy()
	broken.Data[slo] = "{"
	step("a bad ConfigMap", with(func(s *strategy.Strategy) { s.Policy = strategy.None }), node(nil), web(""), broken,
		namespaces)
	if diff := cmp.Diff([]string{"ConfigMap kube-system/ack-slo-config "}, w.rejected()); diff != "" {
		t.Errorf("the pod is good again, the ConfigMap is bad: -want +got\n%s", diff)
	}
	first := configMap("koordinator-system", "slo-controller-config", slo, `{"clusterStrategy": {"policy": "auto"}}`)
	step("the first ConfigMap that has the key", autoStrategy(), node(nil), web(""), first, cluster)
	step("no ConfigMap", strategy.Default(), node(nil), web(""))
	want := []string{
		`CPUBurstInvalid Pod default/web Pod default/web: koordinator.sh/cpuBurst: policy: "on" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`,
		`CPUBurstInvalid Pod default/web Pod default/web: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: 99 is outside 100..10000`,
		`CPUBurstInvalid ConfigMap kube-system/ack-slo-config ConfigMap kube-system/ack-slo-config: cpu-burst-config: not JSON: unexpected EOF (such as {"policy": "auto"})`,
	}
	if left := w.d.Status().Rejected; len(left) != 0 {
		t.Errorf("nothing bad is left, and rejected is still %v", left)
	}
	if diff := cmp.Diff(want, w.waiting()); diff != "" || w.d.Status().RejectedTotal != 3 {
		t.Errorf("%d rejected; -want +got\n%s", w.d.Status().RejectedTotal, diff)
	}
}

func TestNodeStrategyIsAnnounced(t *testing.T) {
	w := newWorld(t)
	cluster := configMap("kube-system", "ack-slo-config", "cpu-burst-config",
		`{"clusterStrategy": {"sharePoolThresholdPercent": 70}}`)
	w.given(node(nil), cluster)
	own := strategy.DefaultNode()
	own.CPUBurstPercent = 500
	w.d.Configure(own, config.Tenants{})
	w.d.Configure(own, config.Tenants{})
	for i, want := range []strategy.Strategy{{Policy: "none", CPUBurstPercent: 1000},
		{Policy: "none", CPUBurstPercent: 500}} {
		got := <-w.node
		if got.SharePoolThresholdPercent != 70 || got.CPUBurstPercent != want.CPUBurstPercent {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if len(w.node) != 0 {
		t.Errorf("announced again: %+v", <-w.node)
	}
}

func TestOldAnnotationAndForeignWriterAreReported(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	pod := web("")
	pod.Annotations = map[string]string{"alibabacloud.com/cpuBurst": `{"policy": "auto"}`}
	w.given(node(nil), pod)
	if c := w.pod(0).Containers[0]; c.Strategy.Policy != strategy.Auto {
		t.Errorf("%+v", c)
	}
	for range 2 {
		w.d.Foreign("/kubepods/burstable/podu1/"+id("a"), "another program set the quota")
		w.d.Foreign("/system.slice/x.service", "not a pod's")
	}
	want := []string{"CPUBurstDeprecated Pod default/web alibabacloud.com/cpuBurst is deprecated: use " +
		"koordinator.sh/cpuBurst", "CPULimitForeignWriter Pod default/web another program set the quota"}
	if diff := cmp.Diff(want, w.waiting()); diff != "" {
		t.Error(diff)
	}
}

// TestAPodOptsOutOfReceipts by its annotation, and in by none; the others of the node have what the cluster says.
func TestAPodOptsOutOfReceipts(t *testing.T) {
	for text, want := range map[string]float64{"": 0.02, "true": 0.02, "false": 0, "no": 0} {
		w := newWorld(t)
		w.groups.set(group("u1", "a"))
		pod := web(`{"policy": "auto", "receipts": "50%"}`)
		pod.Annotations["plimsoll/receipts"] = text
		w.given(node(nil), pod, configMap("koordinator-system", "slo-controller-config", "cpu-burst-config",
			`{"clusterStrategy": {"receipts": "2%"}}`))
		if got := w.pod(0).Containers[0].Strategy.Receipts; got != want {
			t.Errorf("%q: %v of the spells, want %v", text, got, want)
		}
	}
}
