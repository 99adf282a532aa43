package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

func sidecar(c corev1.Container) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

// The limits are those that the kubelet's ResourceConfigForPod would write, in thousandths of a CPU.
func TestPodSize(t *testing.T) {
	for _, c := range []struct {
		name           string
		spec           corev1.PodSpec
		limit, request milli
	}{
		{"one container", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")}}, 500, 100},
		{"the sum", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m"), box("b", "1", "2")}}, 2500,
			1100},
		{"one without a limit",
			corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m"), box("b", "1", "")}}, 0, 1100},
		{"best effort", corev1.PodSpec{Containers: []corev1.Container{box("a", "", "")}}, 0, 0},
		{"a larger init container", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")},
			InitContainers: []corev1.Container{box("i", "2", "3")}}, 3000, 2000},
		{"a smaller init container", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")},
			InitContainers: []corev1.Container{box("i", "50m", "50m")}}, 500, 100},
		{"an init container without a limit", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")},
			InitContainers: []corev1.Container{box("i", "50m", "")}}, 0, 100},
		{"a native sidecar", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")},
			InitContainers: []corev1.Container{sidecar(box("s", "100m", "250m"))}}, 750, 200},
		{"a sidecar beside a later init container", corev1.PodSpec{Containers: []corev1.Container{box("a", "1", "1")},
			InitContainers: []corev1.Container{sidecar(box("s", "1", "1")), box("i", "3", "3")}}, 4000, 4000},
		{"a sidecar without a limit beside one with",
			corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")},
				InitContainers: []corev1.Container{sidecar(box("s", "", "250m")), sidecar(box("u", "", ""))}}, 750,
			100},
		{"a sidecar without a limit before one with",
			corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")},
				InitContainers: []corev1.Container{sidecar(box("u", "", "")), sidecar(box("s", "", "250m"))}}, 0, 100},
		{"the pod's own", corev1.PodSpec{Containers: []corev1.Container{box("a", "", "500m"), box("b", "", "")},
			Resources: &corev1.ResourceRequirements{Limits: cpuIs("2"), Requests: cpuIs("1")}}, 2000, 1000},
		{"overhead", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "500m")}, Overhead: cpuIs("250m")},
			750, 350},
		{"overhead of no limit", corev1.PodSpec{Containers: []corev1.Container{box("a", "100m", "")},
			Overhead: cpuIs("250m")}, 0, 350},
	} {
		p := newPod(&corev1.Pod{Spec: c.spec}, course{})
		if want := (course{c.limit, c.limit}); p.limit != want || p.request != c.request {
			t.Errorf("%s: limit %v, request %d, want %d and %d", c.name, p.limit, p.request, c.limit, c.request)
		}
	}
}

// TestInitOnly: a limit of an init container, also of one that runs beside the others, bounds nothing of the main ones.
func TestInitOnly(t *testing.T) {
	init := []corev1.Container{sidecar(box("s", "", "250m")), box("i", "3", "3")}
	for _, c := range []struct {
		name string
		spec corev1.PodSpec
		want bool
	}{
		{"a main container has one, too",
			corev1.PodSpec{Containers: []corev1.Container{box("a", "", "500m"), box("b", "", "")},
				InitContainers: init}, false},
		{"a sidecar and an init container", corev1.PodSpec{Containers: []corev1.Container{box("a", "", "")},
			InitContainers: init}, true},
		{"the pod's own", corev1.PodSpec{Containers: []corev1.Container{box("a", "", "")}, InitContainers: init,
			Resources: &corev1.ResourceRequirements{Limits: cpuIs("2")}}, false},
		{"none at all", corev1.PodSpec{Containers: []corev1.Container{box("a", "", "")}}, false},
	} {
		if got := newPod(&corev1.Pod{Spec: c.spec}, course{}).initOnly; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestResize(t *testing.T) {
	pending := func(kind corev1.PodConditionType) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: kind, Status: corev1.ConditionTrue}}
	}
	for _, c := range []struct {
		name         string
		spec, actual string
		period       time.Duration
		conditions   []corev1.PodCondition
		older        string // the field of before 1.33
		want         course
		resizes      bool
	}{
		{"none", "2", "2", 100 * ms, nil, "", course{2000, 2000}, false},
		{"no status yet", "2", "", 100 * ms, nil, "", course{2000, 2000}, false},
		{"reported as the least limit that there is", "5m", "10m", 100 * ms, nil, "", course{10, 5}, false},
		{"the least limit of a short period", "50m", "100m", 10 * ms, nil, "", course{100, 50}, false},
		{"the same at the usual period", "50m", "100m", 100 * ms, nil, "", course{100, 50}, true},
		{"down", "1", "2", 100 * ms, nil, "", course{2000, 1000}, true},
		{"down, under way", "1", "2", 100 * ms, pending(corev1.PodResizeInProgress), "", course{2000, 1000}, true},
		{"down, put off", "1", "2", 100 * ms, pending(corev1.PodResizePending), "", course{2000, 2000}, false},
		{"up", "3", "2", 100 * ms, nil, "", course{2000, 3000}, true},
		{"up, impossible", "300", "2", 100 * ms, pending(corev1.PodResizePending), "", course{2000, 2000}, false},
		{"up, under way, before 1.33", "3", "2", 100 * ms, nil, "InProgress", course{2000, 3000}, true},
		{"down, put off, before 1.33", "1", "2", 100 * ms, nil, "Deferred", course{2000, 2000}, false},
		{"a condition that no longer holds", "3", "2", 100 * ms,
			[]corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionFalse}}, "",
			course{2000, 3000}, true},
	} {
		o := web("")
		o.Spec.Containers = []corev1.Container{box("apache", "", c.spec)}
		if c.actual != "" {
			o.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: cpuIs(c.actual)}
		}
		//lint:ignore SA1019 kubelets before 1.33 say it there
		o.Status.Conditions, o.Status.Resize = c.conditions, corev1.PodResizeStatus(c.older)
		p := newPod(o, course{})
		if is := p.containers[id("a")]; is.limit != c.want || p.limit != c.want || p.resizes(c.period) != c.resizes {
			t.Errorf("%s: container %+v, pod %v, resizes %v, want %v, %v", c.name, is, p.limit, p.resizes(c.period),
				c.want, c.resizes)
		}
	}
}

// TestResizeOfThePodsOwnLimit: it is under way until the pod's status has it, and not at all where the kubelet has put
// it off. A status that has neither what the spec has nor what it had is a raise that the
// kubelet has read from the group.
func TestResizeOfThePodsOwnLimit(t *testing.T) {
	still := course{2000, 2000}
	for _, c := range []struct {
		name, spec, actual string
		putOff             bool
		before, want       course
		resizes            bool
	}{
		{"not reported", "2", "", false, still, still, false},
		{"none", "2", "2", false, still, still, false},
		{"down", "1", "2", false, still, course{2000, 1000}, true},
		{"down, put off", "1", "2", true, still, still, false},
		{"at a raise", "2", "3501m", false, still, still, false},
		{"down at a raise", "1", "3501m", false, still, course{2000, 1000}, true},
		{"down at a raise, under way", "1", "3501m", false, course{2000, 1000}, course{2000, 1000}, true},
		{"down, put off at a raise", "1", "3501m", true, still, still, false},
		{"down again, not confirmed", "500m", "1", false, course{2000, 1000}, course{1000, 500}, true},
		{"over", "1", "1", false, course{2000, 1000}, course{1000, 1000}, false},
		{"at first, at a raise", "2", "3501m", false, course{}, still, false},
		{"at first, down", "1", "2", false, course{}, course{1000, 1000}, false},
		{"at first, down, put off", "1", "2", true, course{}, still, false},
		{"added, put off", "2", "", true, course{}, course{4000, 4000}, false},
		{"not reported, down, put off", "1", "", true, still, still, false},
	} {
		o := web("")
		own := cpuIs(c.spec)
		o.Spec.Resources = &corev1.ResourceRequirements{Limits: own}
		if c.actual != "" {
			o.Status.Resources = &corev1.ResourceRequirements{Limits: cpuIs(c.actual)}
		}
		if c.putOff {
			o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue}}
		}
		if p := newPod(trimPod(o), c.before); p.limit != c.want || p.resizes(100*ms) != c.resizes {
			t.Errorf("%s: %v, resizes %v, want %v, %v", c.name, p.limit, p.resizes(100*ms), c.want, c.resizes)
		}
	}
}

// TestStarted: a container with a probe has started when it is ready; of others that is not known.
func TestStarted(t *testing.T) {
	probe := &corev1.Probe{PeriodSeconds: 5}
	for _, c := range []struct {
		name               string
		readiness, startup *corev1.Probe
		ready, want        bool
	}{
		{"no probe", nil, nil, true, false},
		{"not ready", probe, nil, false, false},
		{"ready", probe, nil, true, true},
		{"started up", nil, probe, true, true},
		{"starting up", nil, probe, false, false},
	} {
		o := web("")
		o.Spec.Containers[0].ReadinessProbe, o.Spec.Containers[0].StartupProbe = c.readiness, c.startup
		o.Status.ContainerStatuses[0].Ready = c.ready
		for _, o := range []*corev1.Pod{o, trimPod(o), trimPod(trimPod(o))} {
			if got := newPod(o, course{}).containers[id("a")].started; got != c.want {
				t.Errorf("%s: %v", c.name, got)
			}
		}
	}
}

func TestContainersOfEveryKind(t *testing.T) {
	o := web("")
	o.Spec.InitContainers = []corev1.Container{box("init", "", "1"), sidecar(box("side", "200m", "300m"))}
	o.Status.InitContainerStatuses = []corev1.ContainerStatus{runs("init", "b"), runs("side", "c")}
	o.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{runs("debug", "d"), {Name: "not yet"}}
	want := map[string]container{
		id("a"): {name: "apache", limit: course{4000, 4000}, request: 4000},
		id("b"): {name: "init", limit: course{1000, 1000}},
		id("c"): {name: "side", limit: course{300, 300}, request: 200}, id("d"): {name: "debug"},
	}
	if diff := cmp.Diff(want, newPod(o, course{}).containers, cmp.AllowUnexported(container{}, course{})); diff != "" {
		t.Error(diff)
	}
}

// TestWords: class and exclusive are words of a pod. An unknown word is reported, and counts as absent.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		labels    map[string]string
		exclusive string
		want      requests
		bad       string
	}{
		{},
		{labels: map[string]string{"koordinator.sh/qosClass": "LSR"}, want: requests{class: workload.ClassLSR}},
		{labels: map[string]string{"koordinator.sh/qosClass": "LSE"}, want: requests{class: workload.ClassLSE}},
		{labels: map[string]string{"koordinator.sh/qosClass": "BE"}, want: requests{class: workload.ClassBE}},
		{labels: map[string]string{"koordinator.sh/qosClass": "LS", "alibabacloud.com/qosClass": "BE"},
			want: requests{class: workload.ClassLS}},
		{labels: map[string]string{"alibabacloud.com/qosClass": "BE"}, want: requests{class: workload.ClassBE}},
		{labels: map[string]string{"koordinator.sh/qosClass": "SYSTEM"}, want: requests{class: workload.ClassSystem}},
		{labels: map[string]string{"koordinator.sh/qosClass": ""}},
		{labels: map[string]string{"koordinator.sh/qosClass": "lsr"},
			bad: `Pod default/web: koordinator.sh/qosClass: "lsr" is not one of LSE, LSR, LS, BE, SYSTEM (did you mean LSR?)`},
		{labels: map[string]string{"alibabacloud.com/qosClass": "Guaranteed"},
			bad: `Pod default/web: alibabacloud.com/qosClass: "Guaranteed" is not one of LSE, LSR, LS, BE, SYSTEM`},
		{exclusive: "true", want: requests{exclusive: workload.ExclusiveYes}},
		{exclusive: "strict", want: requests{exclusive: workload.ExclusiveStrict}},
		{exclusive: "false", want: requests{exclusive: workload.ExclusiveNo}},
		{exclusive: "yes", bad: `Pod default/web: plimsoll/exclusive: "yes" is not one of true, false, strict`},
	} {
		o := web("")
		o.Labels, o.Annotations = c.labels, map[string]string{"plimsoll/exclusive": c.exclusive}
		for _, o := range []*corev1.Pod{o, trimPod(o)} {
			p := newPod(o, course{})
			_, bad := p.read()
			text := ""
			for _, r := range bad {
				text += r.Error()
			}
			if p.requests != c.want || text != c.bad {
				t.Errorf("%v, %q: %+v, %s", c.labels, c.exclusive, p.requests, text)
			}
		}
	}
}

// TestWordsLive: an unknown word leaves the last value in force, and is reported on the pod once.
func TestWordsLive(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	allowed := configMap("koordinator-system", "slo-controller-config", "plimsoll-tenants",
		`{"exclusiveNamespaces": ["default"]}`)
	step := func(class, exclusive string) {
		t.Helper()
		o := web("")
		o.Labels, o.Annotations = map[string]string{"koordinator.sh/qosClass": class}, map[string]string{
			"plimsoll/exclusive": exclusive}
		w.given(node(nil), o, allowed)
		if c := w.pod(0).Containers[0]; c.Class != workload.ClassLSR || c.Exclusive != workload.ExclusiveStrict {
			t.Errorf("%q, %q: %s, %s", class, exclusive, c.Class, c.Exclusive)
		}
	}
	step("LSR", "strict")
	step("lsr", "strict")
	step("lsr", "strict")
	step("LSR", "yes")
	want := []string{
		`CPUBurstInvalid Pod default/web Pod default/web: koordinator.sh/qosClass: "lsr" is not one of LSE, LSR, LS, BE, SYSTEM (did you mean LSR?)`,
		`CPUBurstInvalid Pod default/web Pod default/web: plimsoll/exclusive: "yes" is not one of true, false, strict`,
	}
	if diff := cmp.Diff(want, w.waiting()); diff != "" || w.d.Status().RejectedTotal != 2 {
		t.Errorf("%d rejected; -want +got\n%s", w.d.Status().RejectedTotal, diff)
	}
}

// The kubelet's MilliCPUToQuota: 100 ms and shorter periods, never below 1 ms.
func TestBandwidth(t *testing.T) {
	for _, c := range []struct {
		m      milli
		period cpu.Bandwidth
	}{
		{4000, cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms}}, {1, cpu.Bandwidth{Quota: ms, Period: 100 * ms}},
		{50, cpu.Bandwidth{Quota: ms, Period: 10 * ms}}, {1500, cpu.Bandwidth{Quota: 15 * ms, Period: 10 * ms}},
	} {
		if got := c.m.bandwidth(c.period.Period); got != c.period {
			t.Errorf("%d: %+v, want %+v", c.m, got, c.period)
		}
	}
}

// What is trimmed away is not read: the facts are the same, and nothing large is left.
func TestTrim(t *testing.T) {
	o := web(`{"policy": "auto"}`)
	o.Labels = map[string]string{"koordinator.sh/qosClass": "LS", "app": "web"}
	o.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "a lot"
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	o.Spec.InitContainers = []corev1.Container{sidecar(box("side", "200m", "300m"))}
	o.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	o.Spec.Volumes = []corev1.Volume{{Name: "v"}}
	o.Spec.Overhead = cpuIs("250m")
	o.Status.Phase = corev1.PodSucceeded
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Message: "long"}}
	o.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: cpuIs("3")}
	o.Status.InitContainerStatuses = []corev1.ContainerStatus{runs("side", "c")}
	o.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{runs("debug", "d")}
	short := trimPod(o)
	facts := cmp.AllowUnexported(pod{}, requests{}, container{}, course{}, claim{}, owner{})
	if diff := cmp.Diff(newPod(o, course{}), newPod(short, course{}), facts); diff != "" {
		t.Errorf("the trimmed pod is another one: %s", diff)
	}
	if diff := cmp.Diff(short, trimPod(short)); diff != "" {
		t.Errorf("trimmed twice: %s", diff)
	}
	if short.Spec.Containers[0].Image != "" || short.Spec.Containers[0].Env != nil || short.Spec.Volumes != nil ||
		short.ManagedFields != nil ||
		len(short.Labels) != 1 || len(short.Annotations) != 1 || len(short.Status.Conditions) != 1 ||
		short.Status.Conditions[0].Message != "" {
		t.Errorf("left: %+v", short)
	}
	m := trimmed(configMap("a", "b", "cpu-burst-config", "{}"))
	if diff := cmp.Diff(map[string]string{"cpu-burst-config": "{}"}, m.(*corev1.ConfigMap).Data); diff != "" {
		t.Errorf("ConfigMap: %s", diff)
	}
	n := node(map[string]string{"pool": "web"})
	n.Status.Images = []corev1.ContainerImage{{}}
	if got := trimmed(n); got.(*corev1.Node).Labels["pool"] != "web" || got.(*corev1.Node).Status.Images != nil {
		t.Errorf("node: %+v", got)
	}
}
