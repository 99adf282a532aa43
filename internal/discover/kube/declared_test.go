package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// TestTheSpecOutlivesSystemd: what systemd said before a resize is not declared after it, of the pod nor of the
// container: the agent would write the old limit.
func TestTheSpecOutlivesSystemd(t *testing.T) {
	w := newWorld(t)
	g := group("u1", "a")
	old := &workload.Declared{Bandwidth: cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms},
		Source: "systemd CPUQuota= of x.slice", Rounded: true}
	g.Declared, g.Containers[0].Declared = old, old
	w.groups.set(g)
	pod := web("")
	resize := func(spec, status string, file, declared, next time.Duration) {
		t.Helper()
		pod = pod.DeepCopy()
		pod.Spec.Containers[0].Resources.Limits = cpuIs(spec)
		pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: cpuIs(status)}
		w.writes(g.Path, file)
		w.writes(g.Containers[0].Path, file)
		w.given(node(nil), pod)
		p := w.pod(0)
		for _, d := range []*workload.Declared{p.Declared, p.Containers[0].Declared} {
			if d == nil || d.Bandwidth.Quota != declared || d.Next.Quota != next {
				t.Errorf("spec %s, status %s: declared %+v, want %v, next %v", spec, status, d, declared, next)
			}
		}
	}
	resize("4", "4", 400*ms, 400*ms, 0)
	resize("5", "4", 500*ms, 400*ms, 500*ms)
	resize("5", "5", 500*ms, 500*ms, 0)
}

// TestContainersWithoutALimit have the limit that their pod has for all its containers together, without the pod's
// overhead, and follow its resize. The sandbox has none.
func TestContainersWithoutALimit(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a", "b", "c"))
	pod := web("")
	pod.Spec.Containers = []corev1.Container{box("apache", "", ""), box("side", "", "100m")}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, runs("side", "b"))
	pod.Spec.Overhead = cpuIs("50m")
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: cpuIs("400m")}
	is := func(quota, next time.Duration) *workload.Declared {
		d := &workload.Declared{Bandwidth: cpu.Bandwidth{Quota: quota, Period: 100 * ms},
			Source: "spec of pod default/web"}
		if next > 0 {
			d.Next = cpu.Bandwidth{Quota: next, Period: 100 * ms}
		}
		return d
	}
	expect := func(when string, want ...*workload.Declared) {
		t.Helper()
		w.given(node(nil), pod)
		p := w.pod(0)
		got := []*workload.Declared{p.Declared}
		for _, c := range p.Containers {
			got = append(got, c.Declared)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	expect("at first", is(45*ms, 0), is(40*ms, 0), is(10*ms, 0), nil)
	if c := w.pod(0).Containers[0]; c.Request != 0 {
		t.Errorf("a request of %v of the pod's limit", c.Request)
	}
	pod = pod.DeepCopy()
	pod.Spec.Resources.Limits = cpuIs("200m")
	pod.Status.Resources = &corev1.ResourceRequirements{Limits: cpuIs("400m")}
	expect("resized", is(45*ms, 25*ms), is(40*ms, 20*ms), is(10*ms, 0), nil)
	pod = pod.DeepCopy()
	pod.Status.Resources = &corev1.ResourceRequirements{Limits: cpuIs("200m")}
	expect("confirmed", is(25*ms, 0), is(20*ms, 0), is(10*ms, 0), nil)
}

// TestOwnLimitIsNews: a limit for all containers together that is the sum of theirs makes another snapshot.
func TestOwnLimitIsNews(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	pod := web("")
	w.given(node(nil), pod)
	if w.pod(0).Own {
		t.Fatal("the pod has a limit of its own")
	}
	pod = pod.DeepCopy()
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: cpuIs("4")}
	if w.given(node(nil), pod); !w.pod(0).Own {
		t.Error("the last snapshot stays")
	}
}

// TestAnAddedLimitIsPutOff: a pod that had no limit of its own has none while the kubelet puts it off, also where the
// status has a raise of ours, which the kubelet has read from the group.
func TestAnAddedLimitIsPutOff(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	pod := web("")
	w.given(node(nil), pod)
	pod = pod.DeepCopy()
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: cpuIs("2")}
	pod.Status.Resources = &corev1.ResourceRequirements{Limits: cpuIs("7001m")}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue}}
	for range 2 {
		w.given(node(nil), pod)
		if p := w.pod(0); p.Own || p.Declared.Bandwidth.Quota != 400*ms || p.Containers[0].Paused {
			t.Errorf("%+v, declared %+v", p, p.Declared)
		}
	}
}
