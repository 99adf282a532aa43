//go:build kube

package kube

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// raising is a policy that raises containers which have just started as any others. Else their throttles are only ended
// one by one, and who is refilled in each period gets no burst either.
const raising = "auto, startupSeconds: 0"

// helped says what is missing until the agent helps a container that needs more than its limit: by a burst, or by a
// quota in its place.
func (p *pod) helped(name string, limit time.Duration) string {
	if b := p.limits()[name]; b.Burst > 0 || b.Quota > limit {
		return ""
	}
	return name + " has neither a burst nor a raised quota"
}

// TestKilledAgent: what an agent leaves that was killed is taken over by the next one, which puts every file back when
// it stops; and so does a restore without an agent.
func TestKilledAgent(t *testing.T) {
	p := start(t,
		want{name: "killed", containers: []container{sleeper("a", "100m", "500m"), hog("hog", "100m", "200m")}})
	before := files(t)
	a := follower(t, "auto")
	helped := func() {
		eventually(t, wait, func() string { return p.helped("a", 50*ms) + p.helped("hog", 20*ms) })
	}
	helped()
	a.stop(syscall.SIGKILL)
	if cmp.Equal(before, files(t)) {
		t.Fatal("nothing was left behind: the scenario proves nothing")
	}
	a.start()
	helped()
	a.stop(syscall.SIGTERM)
	same(t, before)

	a.start()
	helped()
	a.stop(syscall.SIGKILL)
	a.restore()
	same(t, before)
}

// outage is how long the API server stays away: long enough for an agent's watches to end. PLIMSOLL_OUTAGE=30s (make
// test-long) is one in which they have been tried several times.
func outage(t *testing.T) time.Duration { return during(t, "PLIMSOLL_OUTAGE", 4*time.Second) }

// during is what a variable says, or a default.
func during(t *testing.T, variable string, d time.Duration) time.Duration {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// TestAPIServerAway: for a while the API server does not answer. Values in force stay in force, an agent that starts
// meanwhile writes nothing before it knows the pods, and both restore everything.
func TestAPIServerAway(t *testing.T) {
	p := start(t,
		want{name: "away", containers: []container{sleeper("a", "100m", "500m"), sleeper("b", "100m", "300m")}})
	before := files(t, p)
	a := follower(t, "cpuBurstOnly")
	bursts := map[string]time.Duration{"": 80 * ms, "a": 50 * ms, "b": 30 * ms}
	p.become(bursts)
	part(t, "kill", "apiserver")
	t.Cleanup(func() { // the kubelet would wait up to a minute before its next request
		part(t, "start", "apiserver")
		part(t, "stop", "kubelet")
		part(t, "start", "kubelet")
	})
	always(t, outage(t), func() string { return cmp.Diff(bursts, p.bursts()) })
	a.stop(syscall.SIGTERM)
	same(t, before, p)

	a.start()
	always(t, 2*time.Second, func() string { return cmp.Diff(before, files(t, p)) })
	part(t, "start", "apiserver")
	took := eventually(t, wait, func() string { return cmp.Diff(bursts, p.bursts()) })
	t.Logf("in force %v after the API server's return", took.Round(ms))
	p.annotate(annotation + `={"policy": "none"}`)
	p.become(map[string]time.Duration{"": 0, "a": 0, "b": 0})
	a.stop(syscall.SIGTERM)
	same(t, before, p)
}

// TestKubeletAndRuntimeRestart: neither takes a burst away, and nothing is left behind after them.
func TestKubeletAndRuntimeRestart(t *testing.T) {
	p := start(t, want{name: "steady", containers: []container{sleeper("a", "100m", "500m")}})
	before := files(t)
	a := follower(t, "cpuBurstOnly")
	p.become(full(50 * ms))
	for _, name := range []string{"kubelet", "containerd"} {
		part(t, "stop", name)
		part(t, "start", name)
		always(t, 2*time.Second, func() string { return cmp.Diff(full(50*ms), p.bursts()) })
	}
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestContainerRestart: the new container gets its burst, again and again, and the pod's limit does not drift
// (Koordinator adds the difference of a container that is gone to the pod's quota for good).
func TestContainerRestart(t *testing.T) {
	p := start(t,
		want{name: "restarts", containers: []container{hog("a", "50m", "100m"), sleeper("b", "100m", "300m")}})
	before := files(t, p)
	a := follower(t, raising)
	for range 2 {
		took := eventually(t, wait, func() string { return p.helped("a", 10*ms) + p.helped("b", 30*ms) })
		t.Logf("after %v", took.Round(ms))
		p.restart("a")
	}
	a.stop(syscall.SIGTERM)
	same(t, before, p)
}

// TestDeletionUnderLoad: pods come and go while their containers are throttled and raised. The agent goes on, the
// kubelet removes every group, and the pod that stays is as before.
func TestDeletionUnderLoad(t *testing.T) {
	stays := start(t, want{name: "stays", containers: []container{sleeper("a", "100m", "300m")}})
	before := files(t)
	a := follower(t, raising)
	stays.become(full(30 * ms))
	for round := range 2 {
		var wanted []want
		for i := range 3 {
			wanted = append(wanted, want{name: fmt.Sprintf("goes-%d-%d", round, i),
				containers: []container{hog("a", "20m", "50m")}})
		}
		pods := starts(t, wanted...)
		for _, p := range pods {
			eventually(t, wait, func() string { return p.helped("a", 5*ms) })
		}
		for _, p := range pods {
			p.ask(1)
		}
		for _, p := range pods {
			p.gone()
			eventually(t, wait, func() string {
				if _, err := cluster.groups.Inode(p.path); err == nil {
					return p.path + " is still there"
				}
				return ""
			})
		}
	}
	for _, c := range a.status().Containers {
		if c.Quota.Problem != "" || c.Burst.Problem != "" {
			t.Errorf("%s: %+v, %+v", c.Cgroup, c.Quota, c.Burst)
		}
	}
	stays.stays(full(30 * ms))
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestEviction: a kubelet that is short of memory ends pods, and their groups go while the agent works on them.
func TestEviction(t *testing.T) {
	before := files(t)
	p := start(t, want{name: "evicted", containers: []container{hog("a", "20m", "50m")}})
	a := follower(t, raising)
	eventually(t, wait, func() string { return p.helped("a", 5*ms) })
	kubeletSays(t, "evictionSoft: {memory.available: 99%}\nevictionSoftGracePeriod: {memory.available: "+
		"1s}\nevictionMaxPodGracePeriod: 1")
	eventually(t, wait, func() string {
		if status := p.kubectl("get", "pod", p.name, "-o", "jsonpath={.status}"); !strings.Contains(status,
			"TerminationByKubelet") {
			return "the pod is not evicted: " + status
		}
		if _, err := cluster.groups.Inode(p.path); err == nil {
			return p.path + " is still there"
		}
		return ""
	})
	eventually(t, wait, func() string { return cmp.Diff(0, len(a.status().Containers)) })
	a.stop(syscall.SIGTERM)
	same(t, before)
}
