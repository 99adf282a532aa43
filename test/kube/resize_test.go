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

// resize sets other CPUs for a container.
func (p *pod) resize(name, request, limit string) {
	p.t.Helper()
	p.patch("resize", "strategic-merge", object{"spec": object{"containers": []object{{"name": name,
		"resources": object{"requests": object{"cpu": request}, "limits": object{"cpu": limit}}}}}})
}

func milli(n int) string { return fmt.Sprintf("%dm", n) }

// resized waits until the kubelet reports no resize of the pod any more.
func (p *pod) resized() {
	p.t.Helper()
	eventually(p.t, wait, func() string { return p.conditions()["PodResizeInProgress"] })
}

// TestResize: a container with a burst is made smaller and larger in place. The kernel refuses a quota below the burst,
// so the burst has to go before. The new limit gets its burst, and is what stays when the agent stops.
func TestResize(t *testing.T) {
	p := start(t,
		want{name: "resized", containers: []container{sleeper("a", "100m", "500m"), sleeper("b", "100m", "100m")}})
	a := follower(t, "cpuBurstOnly")
	p.become(map[string]time.Duration{"": 60 * ms, "a": 50 * ms, "b": 10 * ms})
	for _, size := range []int{200, 400, 100} {
		p.resize("a", "50m", milli(size))
		quota := time.Duration(size) * ms / 10
		want := map[string]cpu.Bandwidth{"": bandwidth(quota+10*ms, quota+10*ms), "a": bandwidth(quota, quota),
			"b": bandwidth(10*ms, 10*ms)}
		took := eventually(t, wait, func() string { return cmp.Diff(want, p.limits()) })
		t.Logf("%dm after %v", size, took.Round(ms))
		p.resized()
	}
	a.stop(syscall.SIGTERM)
	want := map[string]cpu.Bandwidth{"": bandwidth(20*ms, 0), "a": bandwidth(10*ms, 0), "b": bandwidth(10*ms, 0)}
	if diff := cmp.Diff(want, p.limits()); diff != "" {
		t.Error(diff)
	}
}

// setBurst sets a pod's or container's burst, as another program does.
func (p *pod) setBurst(name string, burst time.Duration) {
	p.t.Helper()
	if err := cluster.groups.SetBurst(p.groups()[name], burst); err != nil {
		p.t.Fatal(err)
	}
}

// TestStalePodQuota: the kubelet's write of the pod's new quota is refused for the burst that an agent which does not
// answer has left there, and the kubelet takes the resize for done. The agent writes what was declared when it is back,
// and there is nothing to restore afterwards.
func TestStalePodQuota(t *testing.T) {
	p := start(t,
		want{name: "stale", containers: []container{sleeper("a", "50m", "500m"), sleeper("b", "100m", "100m")}})
	a := follower(t, "cpuBurstOnly")
	p.become(map[string]time.Duration{"": 60 * ms, "a": 50 * ms, "b": 10 * ms})
	a.wrote(p.containers["a"])
	a.freeze()
	p.setBurst("a", 0) // so that the container's is taken
	p.resize("a", "50m", "200m")
	eventually(t, wait, func() string { return cmp.Diff(bandwidth(20*ms, 0), p.limits()["a"]) })
	p.resized()
	if b := p.limits()[""]; b.Quota != 60*ms {
		t.Fatalf("the pod has %v: the scenario proves nothing", b)
	}
	a.signal(syscall.SIGCONT)
	eventually(t, wait, func() string {
		want := bandwidth(30*ms, 0)
		want.Burst = p.limits()[""].Burst
		return cmp.Diff(want, p.limits()[""])
	})
	a.stop(syscall.SIGTERM)
	want := map[string]cpu.Bandwidth{"": bandwidth(30*ms, 0), "a": bandwidth(20*ms, 0), "b": bandwidth(10*ms, 0)}
	if diff := cmp.Diff(want, p.limits()); diff != "" {
		t.Error(diff)
	}
}
