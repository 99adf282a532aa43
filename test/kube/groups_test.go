//go:build kube

package kube

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPodsWithoutTheAPIServer: an agent without --kube finds pods and containers by the names of
// their groups alone, bursts those that have a limit, and puts every file of the kubelet's groups back when it stops.
func TestPodsWithoutTheAPIServer(t *testing.T) {
	pods := starts(t,
		want{name: "burstable", containers: []container{sleeper("a", "100m", "500m"), sleeper("b", "100m", "200m")}},
		want{name: "guaranteed", containers: []container{sleeper("a", "300m", "300m")}},
		want{name: "half", containers: []container{sleeper("a", "100m", "400m"), sleeper("free", "100m", "")}},
		want{name: "effort", containers: []container{sleeper("a", "", "")}})
	burstable, guaranteed, half, effort := pods[0], pods[1], pods[2], pods[3]
	before := files(t, burstable)
	a := newAgent(t, policy("cpuBurstOnly"))
	a.start()
	for _, c := range []struct {
		pod  *pod
		want map[string]time.Duration
	}{
		{burstable, map[string]time.Duration{"": 70 * ms, "a": 50 * ms, "b": 20 * ms}},
		{guaranteed, map[string]time.Duration{"": 30 * ms, "a": 30 * ms}},
		{half, map[string]time.Duration{"": 0, "a": 40 * ms, "free": 0}}, // the pod has no limit
		{effort, map[string]time.Duration{"": 0, "a": 0}},
	} {
		took := eventually(t, wait, func() string { return cmp.Diff(c.want, c.pod.bursts()) })
		t.Logf("%s after %v", c.pod.name, took.Round(ms))
	}
	burstable.restart("a")
	eventually(t, wait, func() string {
		return cmp.Diff(map[string]time.Duration{"": 70 * ms, "a": 50 * ms, "b": 20 * ms}, burstable.bursts())
	})
	late := start(t, want{name: "late", containers: []container{sleeper("a", "100m", "100m")}})
	eventually(t, wait, func() string {
		return cmp.Diff(map[string]time.Duration{"": 10 * ms, "a": 10 * ms}, late.bursts())
	})
	late.delete()
	a.stop(syscall.SIGTERM)
	same(t, before, burstable)
}
