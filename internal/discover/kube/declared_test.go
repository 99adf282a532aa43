package kube

import (
	"testing"
	"time"

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
