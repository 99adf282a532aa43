//go:build kube

package kube

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// nriSocket is where the cluster's containerd listens for plugins (up.sh).
const nriSocket = scratch + "/containerd/nri.sock"

// resizes waits until the limits are as wanted and the kubelet says that the resize is done, and never that it failed.
func (p *pod) resizes(want map[string]cpu.Bandwidth) time.Duration {
	p.t.Helper()
	took := eventually(p.t, wait, func() string {
		if said := p.conditions()["PodResizeInProgress"]; strings.HasPrefix(said, "Error") {
			p.t.Errorf("the kubelet says: %s", said)
		}
		for name, b := range p.limits() {
			if b.Quota != want[name].Quota {
				return cmp.Diff(want, p.limits())
			}
		}
		return ""
	})
	eventually(p.t, wait, func() string { return cmp.Diff(want, p.limits()) })
	return took
}

// TestResizeWithNRI: containerd calls the plugin before it writes, and the kernel accepts the first write of the
// kubelet, at both levels. Nothing else announces the resize to the agent.
func TestResizeWithNRI(t *testing.T) {
	p := start(t,
		want{name: "asked", containers: []container{sleeper("a", "50m", "500m"), sleeper("b", "100m", "100m")}})
	a := newAgent(t, policy("cpuBurstOnly"), "--nri-socket", nriSocket)
	a.start()
	a.connected("nri")
	p.become(map[string]time.Duration{"": 60 * ms, "a": 50 * ms, "b": 10 * ms})
	for _, size := range []int{200, 400, 100} {
		p.resize("a", "50m", milli(size))
		quota := time.Duration(size) * ms / 10
		took := p.resizes(map[string]cpu.Bandwidth{"": bandwidth(quota+10*ms, quota+10*ms),
			"a": bandwidth(quota, quota), "b": bandwidth(10*ms, 10*ms)})
		t.Logf("%dm after %v", size, took.Round(ms))
	}
	s := a.status().NRI
	if s.Prepared < 2 || s.Asked < 3 {
		t.Errorf("%+v", s)
	}
	t.Logf("%+v", *s)

	part(t, "stop", "containerd")
	part(t, "start", "containerd")
	eventually(t, wait, func() string {
		if n := a.status().NRI; !n.Connected || n.Lost != 1 {
			return cmp.Diff(s, n)
		}
		return ""
	})
	runtimeKnown(t) // or its first call may fail, and it says so
	p.resize("a", "50m", "80m")
	p.resizes(map[string]cpu.Bandwidth{"": bandwidth(18*ms, 18*ms), "a": bandwidth(8*ms, 8*ms),
		"b": bandwidth(10*ms, 10*ms)})
	a.stop(syscall.SIGTERM)
	want := map[string]cpu.Bandwidth{"": bandwidth(18*ms, 0), "a": bandwidth(8*ms, 0), "b": bandwidth(10*ms, 0)}
	if diff := cmp.Diff(want, p.limits()); diff != "" {
		t.Error(diff)
	}
}

// resizeFlags are the ways in which an agent learns of a resize: the runtime calls it before,
// or the API server sends it.
func resizeFlags() map[string][]string {
	return map[string][]string{
		"nri":  {"--nri-socket", nriSocket},
		"kube": {"--kube", "--kubeconfig", filepath.Join(scratch, "pki/admin.kubeconfig"), "--node-name", nodeName},
	}
}

// connected waits until the plugin is connected, where the agent uses it: it connects after its start.
func (a *agent) connected(how string) {
	a.t.Helper()
	eventually(a.t, wait, func() string {
		if n := a.status().NRI; how == "nri" && (n == nil || !n.Connected) {
			return "not connected"
		}
		return ""
	})
}

// TestResizeOfARaisedPod: a container that is raised above its limit, beside one that is made smaller, larger and
// smaller. On v1 a pod's quota below a container's is refused.
func TestResizeOfARaisedPod(t *testing.T) {
	for name, flags := range resizeFlags() {
		t.Run(name, func(t *testing.T) {
			p := start(t, want{name: "raised-" + name, containers: []container{sleeper("a", "50m", "300m"),
				hog("hog", "50m", "100m")}})
			a := newAgent(t, policy("cfsQuotaBurstOnly"), flags...)
			a.start()
			a.connected(name)
			raised := func() string { return p.helped("hog", 10*ms) }
			eventually(t, wait, raised)
			for _, size := range []int{100, 400, 200} {
				p.resize("a", "50m", milli(size))
				want := time.Duration(size) * ms / 10
				took := eventually(t, wait, func() string { return cmp.Diff(bandwidth(want, 0), p.limits()["a"]) })
				t.Logf("%dm after %v", size, took.Round(ms))
				p.resized()
				eventually(t, wait, raised)
			}
			a.stop(syscall.SIGTERM)
			if diff := cmp.Diff(map[string]cpu.Bandwidth{"": bandwidth(30*ms, 0), "a": bandwidth(20*ms, 0),
				"hog": bandwidth(10*ms, 0)}, p.limits()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
