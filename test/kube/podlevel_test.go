//go:build kube

package kube

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// together gives a pod a limit for all its containers together (KEP 2837).
func together(limit string) func(spec object) {
	return func(spec object) {
		spec["resources"] = object{"requests": object{"cpu": "100m", "memory": "64Mi"},
			"limits": object{"cpu": limit, "memory": "64Mi"}}
	}
}

// resizePod sets another limit for all containers of the pod together (KEP 5419, from Kubernetes 1.36 on).
func (p *pod) resizePod(limit string) {
	p.t.Helper()
	p.patch("resize", "strategic-merge", object{"spec": object{"resources": object{"limits": object{"cpu": limit}}}})
}

// podLevelIs waits until the pod's status has the new limit, which it has after the kubelet has written all groups.
func (p *pod) podLevelIs(limit string) {
	p.t.Helper()
	eventually(p.t, wait, func() string {
		var o struct {
			Status struct {
				Resources struct{ Limits struct{ CPU string } }
			}
		}
		if get(p.t, p.at(), &o); o.Status.Resources.Limits.CPU != limit {
			return fmt.Sprintf("the pod's status has a limit of %q, not %q", o.Status.Resources.Limits.CPU, limit)
		}
		return ""
	})
}

// TestPodLevelResize: the limit of a whole pod is made smaller and larger in place beside bursts. A container without a
// limit of its own gets the pod's, so the kubelet resizes it with the pod.
func TestPodLevelResize(t *testing.T) {
	for name, flags := range podLevelFlags() {
		t.Run(name, func(t *testing.T) {
			p := start(t, want{name: "whole-" + name, containers: []container{sleeper("a", "", ""),
				sleeper("b", "50m", "100m")}}, together("400m"))
			a := newAgent(t, policy("cpuBurstOnly"), flags...)
			a.start()
			a.connected(name)
			p.become(map[string]time.Duration{"": 40 * ms, "a": 40 * ms, "b": 10 * ms})
			for _, size := range []int{200, 500, 300} {
				p.resizePod(milli(size))
				quota := time.Duration(size) * ms / 10
				want := map[string]cpu.Bandwidth{"": bandwidth(quota, quota), "a": bandwidth(quota, quota),
					"b": bandwidth(10*ms, 10*ms)}
				took := p.resizedBy(name, want)
				t.Logf("%dm after %v", size, took.Round(ms))
				p.podLevelIs(milli(size))
				p.resized()
			}
			a.stop(syscall.SIGTERM)
			want := map[string]cpu.Bandwidth{"": bandwidth(30*ms, 0), "a": bandwidth(30*ms, 0),
				"b": bandwidth(10*ms, 0)}
			if diff := cmp.Diff(want, p.limits()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPodLevelResizeAlone: only the pod's own group is written, and no container is. The runtime gets the resize first.
func TestPodLevelResizeAlone(t *testing.T) {
	for name, flags := range podLevelFlags() {
		t.Run(name, func(t *testing.T) {
			p := start(t, want{name: "alone-" + name, containers: []container{sleeper("a", "50m", "100m"),
				sleeper("b", "50m", "100m")}}, together("400m"))
			a := newAgent(t, policy("cpuBurstOnly"), flags...)
			a.start()
			a.connected(name)
			p.become(map[string]time.Duration{"": 40 * ms, "a": 10 * ms, "b": 10 * ms})
			for _, size := range []int{200, 500, 150} {
				p.resizePod(milli(size))
				quota := time.Duration(size) * ms / 10
				want := map[string]cpu.Bandwidth{"": bandwidth(quota, quota), "a": bandwidth(10*ms, 10*ms),
					"b": bandwidth(10*ms, 10*ms)}
				took := p.resizedBy(name, want)
				t.Logf("%dm after %v", size, took.Round(ms))
				p.podLevelIs(milli(size))
				p.resized()
			}
			// No container is resized, so all calls of the runtime were for the pod.
			if n := a.status().NRI; name == "nri" && (n == nil || n.Asked < 3) {
				t.Errorf("the runtime did not call: %+v", n)
			}
			a.stop(syscall.SIGTERM)
			want := map[string]cpu.Bandwidth{"": bandwidth(15*ms, 0), "a": bandwidth(10*ms, 0),
				"b": bandwidth(10*ms, 0)}
			if diff := cmp.Diff(want, p.limits()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPodLevelResizeOfARaisedPod: beside a container that is raised above its limit. On v1 a pod's quota below a
// container's is refused.
func TestPodLevelResizeOfARaisedPod(t *testing.T) {
	for name, flags := range podLevelFlags() {
		t.Run(name, func(t *testing.T) {
			p := start(t, want{name: "lifted-" + name, containers: []container{sleeper("a", "50m", "100m"),
				hog("hog", "50m", "100m")}}, together("300m"))
			a := newAgent(t, policy("cfsQuotaBurstOnly"), flags...)
			a.start()
			a.connected(name)
			raised := func() string { return p.helped("hog", 10*ms) }
			eventually(t, wait, raised)
			for _, size := range []int{200, 400, 250} {
				p.resizePod(milli(size))
				p.podLevelIs(milli(size))
				p.resized()
				eventually(t, wait, raised)
			}
			a.stop(syscall.SIGTERM)
			want := map[string]cpu.Bandwidth{"": bandwidth(25*ms, 0), "a": bandwidth(10*ms, 0),
				"hog": bandwidth(10*ms, 0)}
			if diff := cmp.Diff(want, p.limits()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// podLevelFlags are those of resizeFlags, with the API server beside the runtime: only the spec has a pod's own limit.
func podLevelFlags() map[string][]string {
	flags := resizeFlags()
	flags["nri"] = append(flags["nri"], flags["kube"]...)
	return flags
}

// resizedBy waits until the limits are as wanted. Where the runtime calls before it writes, no write of the kubelet is
// refused.
func (p *pod) resizedBy(how string, want map[string]cpu.Bandwidth) time.Duration {
	p.t.Helper()
	if how == "nri" {
		return p.resizes(want)
	}
	return eventually(p.t, wait, func() string { return cmp.Diff(want, p.limits()) })
}
