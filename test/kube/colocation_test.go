//go:build kube

package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
)

const besteffort = "/kubepods/besteffort"

// prefers is an agent that prefers online pods to offline ones, as the ConfigMap of the peer has it.
func prefers(t *testing.T, mechanism string) *agent {
	t.Helper()
	configMap(t, "koordinator-system", "slo-controller-config", map[string]string{"resource-qos-config": `{"clusterStrategy": {
		"lsClass": {"cpuQOS": {"enable": true}}, "beClass": {"cpuQOS": {"enable": true}}}}`})
	a := newAgent(t, policy("none")+"colocation: {mechanism: "+mechanism+"}\n", following()...)
	a.start()
	return a
}

// classed is a pod of a class, without a request where it is offline.
func classed(t *testing.T, name, class string) *pod {
	t.Helper()
	c := sleeper("a", "50m", "")
	if class == "BE" {
		c = sleeper("a", "", "")
	}
	return start(t, want{name: name, labels: map[string]string{"koordinator.sh/qosClass": class},
		containers: []container{c}})
}

func fileOf(group, name string) string {
	return filepath.Join(cgrouptest.Root(), cluster.groups.Dir(group), name)
}

// mismatch says what is wrong with a group's weight and idle, as "shares idle".
func mismatch(want map[string]string) string {
	got := map[string]string{}
	for group := range want {
		weight, err := cluster.groups.Weight(group)
		idle, err2 := cluster.groups.Idle(group)
		got[group] = fmt.Sprint(weight, idle)
		if err != nil || err2 != nil {
			return fmt.Sprint(err, err2)
		}
	}
	return cmp.Diff(want, got)
}

// TestIdleStopsTheKubelet is why the kubelet's own groups are never idle: it writes their weight at its start, which
// the kernel refuses while they are (Koordinator #2732).
func TestIdleStopsTheKubelet(t *testing.T) {
	allGone(t)
	part(t, "stop", "kubelet")
	idle := fileOf(besteffort, "cpu.idle")
	restore := func() {
		part(t, "stop", "kubelet")
		if err := os.WriteFile(idle, []byte("0"), 0); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(fileOf(besteffort, "cpu.shares"), []byte("2"), 0); err != nil {
			t.Error(err)
		}
		part(t, "start", "kubelet")
	}
	t.Cleanup(restore)
	if err := os.WriteFile(idle, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(scratch, "log/kubelet")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	go command(nil, "./part.sh", "start", "kubelet") // may not come back before the node is ready
	eventually(t, wait, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			return err.Error()
		}
		for _, line := range strings.Split(string(text[len(before):]), "\n") {
			if strings.Contains(line, "cpu.shares") && strings.Contains(line, "invalid argument") {
				t.Log(line)
				return ""
			}
		}
		return "the kubelet does not complain of cpu.shares"
	})
}

// watched is how long the kubelet may overwrite what was written: it resends the weights each minute, and when it
// starts. PLIMSOLL_KUBELET=5m (make test-long) is several of its minutes.
func watched(t *testing.T) time.Duration { return during(t, "PLIMSOLL_KUBELET", 2*time.Second) }

// TestPriorityAndTheKubelet: the offline pod stands back, the kubelet has time to resend and is restarted, it goes on
// to start pods, and what was written stays; with the agent everything goes.
func TestPriorityAndTheKubelet(t *testing.T) {
	for _, c := range []struct {
		mechanism string
		pod       string // the values of the offline pod's group
		during    time.Duration
	}{{"idle", "3 true", watched(t)}, {"weight", "2 false", 2 * time.Second}} {
		t.Run(c.mechanism, func(t *testing.T) {
			online, offline := classed(t, "web-"+c.mechanism, "LS"), classed(t, "batch-"+c.mechanism, "BE")
			before := files(t)
			weight, err := cluster.groups.Weight(online.path)
			if err != nil {
				t.Fatal(err)
			}
			a := prefers(t, c.mechanism)
			want := map[string]string{besteffort: "2 false", offline.path: c.pod,
				online.path: fmt.Sprint(weight, false)}
			eventually(t, wait, func() string { return mismatch(want) })
			always(t, c.during, func() string { return mismatch(want) })
			part(t, "stop", "kubelet")
			part(t, "start", "kubelet")
			another := classed(t, "late-"+c.mechanism, "BE") // which a kubelet that does not start would not make
			if c.mechanism == "idle" {
				want[another.path] = c.pod
			}
			eventually(t, wait, func() string { return mismatch(want) })
			if s := a.status().Colocation; s == nil || !s.InForce() || s.Refused() > 0 ||
				string(s.Mechanism) != c.mechanism {
				t.Errorf("%+v", s)
			}
			another.delete()
			a.stop(syscall.SIGTERM)
			same(t, before)
		})
	}
}

// TestResizeOfAnOfflinePod: a pod that stands back can be resized, stands back after that, and has the weight of its
// new request in the end. The kernel would refuse the kubelet that weight if the pod's group were idle.
func TestResizeOfAnOfflinePod(t *testing.T) {
	classed(t, "web-resize", "LS")
	p := start(t, want{name: "batch-resize", labels: map[string]string{"koordinator.sh/qosClass": "BE"},
		containers: []container{sleeper("a", "50m", "500m")}})
	before, err := cluster.groups.Weight(p.path)
	if err != nil {
		t.Fatal(err)
	}
	a := prefers(t, "idle")
	least := func() string { return mismatch(map[string]string{p.path: "2 false"}) }
	eventually(t, wait, least)
	p.resize("a", "100m", "500m")
	eventually(t, wait, func() string {
		for _, k := range a.status().Colocation.Knobs {
			if k.Cgroup == p.path && k.Resets > 0 && k.InForce {
				return ""
			}
		}
		return "the kubelet has not written the pod's weight"
	})
	p.resized()
	always(t, 3*time.Second, least)
	a.stop(syscall.SIGTERM)
	if after, err := cluster.groups.Weight(p.path); err != nil || after < 2*before {
		t.Errorf("weight %d after twice the request, %d before: %v", after, before, err)
	}
}
