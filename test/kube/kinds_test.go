//go:build kube

package kube

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestInitContainer: it has its burst while it runs, and leaves nothing behind.
func TestInitContainer(t *testing.T) {
	a := follower(t, "cpuBurstOnly")
	p := begin(t, want{name: "begins", containers: []container{sleeper("a", "100m", "500m")}}, func(spec object) {
		spec["initContainers"] = []object{sleeper("first", "100m", "300m").manifest()}
	})
	p.running("first")
	p.become(map[string]time.Duration{"": 30 * ms, "first": 30 * ms})
	p.ends("first")
	p.ready()
	p.find()
	p.become(full(50 * ms))
	a.stop(syscall.SIGTERM)
	p.stays(none)
}

// running waits until a container runs.
func (p *pod) running(name string) {
	p.t.Helper()
	eventually(p.t, wait, func() string {
		if p.find(); p.containers[name] == "" {
			return name + " does not run"
		}
		return ""
	})
}

// ends asks a sleeper's processes to end. The first process of a container gets no signal before it has a handler, when
// it has begun to sleep.
func (p *pod) ends(name string) {
	p.t.Helper()
	var pids []int
	eventually(p.t, wait, func() string {
		pids, _ = cluster.groups.Tasks(p.containers[name])
		for _, pid := range pids {
			if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(comm) == "sleep\n" {
				return ""
			}
		}
		return fmt.Sprintf("none of %s sleeps: %v", name, pids)
	})
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGTERM) // one ends with the other
	}
}

// TestSidecarAndEphemeralContainer: an init container that goes on has a burst as any other; an ephemeral one
// has no limit, and is left alone.
func TestSidecarAndEphemeralContainer(t *testing.T) {
	p := start(t, want{name: "beside", containers: []container{sleeper("a", "100m", "500m")}}, func(spec object) {
		side := sleeper("side", "100m", "200m").manifest()
		side["restartPolicy"] = "Always"
		spec["initContainers"] = []object{side}
	})
	before := files(t)
	a := follower(t, "cpuBurstOnly")
	want := map[string]time.Duration{"": 70 * ms, "a": 50 * ms, "side": 20 * ms}
	p.become(want)
	p.kubectl("debug", p.name, "--image=plimsoll.test/busybox:1", "--image-pull-policy=Never", "--container=look", "--",
		"sleep", "1000")
	p.running("look")
	want["look"] = 0
	p.stays(want)
	if p.limits()["look"].Limited() {
		t.Errorf("%v", p.limits()["look"])
	}
	p.annotate(annotation + `={"policy": "none"}`)
	p.become(map[string]time.Duration{"": 0, "a": 0, "side": 0, "look": 0})
	a.stop(syscall.SIGTERM)
	for name, text := range before {
		if now := files(t)[name]; now != text {
			t.Errorf("%s: %q, was %q", name, now, text)
		}
	}
}

// TestPodLevelLimit: a limit that the pod has for all its containers together.
// The kubelet gives it to each that has none, too.
func TestPodLevelLimit(t *testing.T) {
	p := start(t, want{name: "together", containers: []container{sleeper("a", "", ""), sleeper("b", "50m", "100m")}},
		together("400m"))
	before := files(t)
	if b := p.limits()[""]; b.Quota != 40*ms {
		t.Fatalf("the pod has %v: the scenario proves nothing", b)
	}
	a := follower(t, "cpuBurstOnly")
	p.become(map[string]time.Duration{"": 40 * ms, "a": 40 * ms, "b": 10 * ms})
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestStaticPod: one that the kubelet reads from a file. The API server knows it by another UID than its groups have.
func TestStaticPod(t *testing.T) {
	dir := t.TempDir()
	kubeletSays(t, "fileCheckFrequency: 1s\nstaticPodPath: "+dir)
	p := &pod{t: t, namespace: "default", name: "static-" + nodeName}
	remove := p.from(dir, want{name: "static", namespace: "default",
		containers: []container{sleeper("a", "100m",
			"500m")}, annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}})
	p.running("a")
	before := files(t)
	a := follower(t, "none")
	p.become(full(50 * ms))
	a.stop(syscall.SIGTERM)
	same(t, before)
	remove()
}

// TestForeignWriterIsReportedOnce: the burst of another program stays, and one Event on the pod reports it.
func TestForeignWriterIsReportedOnce(t *testing.T) {
	p := start(t, want{name: "shared", containers: []container{sleeper("a", "100m", "500m")}})
	a := follower(t, "cpuBurstOnly")
	p.become(full(50 * ms))
	a.wrote(p.containers["a"])
	p.setBurst("a", 7*ms)
	p.event("CPULimitForeignWriter", "another program")
	p.setBurst("a", 9*ms)
	always(t, 3*time.Second, func() string {
		return cmp.Diff(map[string]time.Duration{"": 50 * ms, "a": 9 * ms}, p.bursts())
	})
	if said := warnings(t, p.namespace, p.name, "CPULimitForeignWriter"); len(said) != 1 {
		t.Errorf("%d Events: %q", len(said), said)
	}
	a.stop(syscall.SIGTERM)
	p.stays(map[string]time.Duration{"": 0, "a": 9 * ms})
}
