//go:build kube

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// many is how many pods a kubelet runs by default (maxPods).
const many = 110

// mostRSS is what the agent may need for them.
const mostRSS = 40 << 20

// crowd makes pods that the API server binds to the node, each with what an ordinary one carries. The kubelet is away:
// the control groups are made by the test, where the kubelet would make them.
func crowd(t *testing.T) {
	t.Helper()
	allGone(t)
	part(t, "stop", "kubelet")
	namespace(t, "crowd")
	t.Cleanup(func() {
		kubectl(t, "delete", "pods", "--all", "--namespace", "crowd", "--grace-period=0", "--force", "--wait=false")
		kubectl(t, "delete", "namespace", "crowd", "--wait=false")
		part(t, "start", "kubelet")
	})
	var list []object
	ballast := strings.Repeat("x", 4096) // of annotations and managed fields that are not read here
	for i := range many {
		w := want{name: fmt.Sprintf("p%d", i), namespace: "crowd",
			annotations: map[string]string{"ballast": ballast, annotation: `{"policy": "cpuBurstOnly"}`},
			containers:  []container{sleeper("a", "10m", "100m"), sleeper("b", "10m", "100m")}}
		list = append(list, w.manifest())
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": list})
	if err != nil {
		t.Fatal(err)
	}
	cmd := kubectlCommand("create", "-f", "-")
	cmd.Stdin = bytes.NewReader(text)
	if _, err := output(cmd); err != nil {
		t.Fatal(err)
	}
	var made struct {
		Items []struct{ Metadata struct{ UID string } }
	}
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pods", "--namespace", "crowd", "-o", "json")),
		&made); err != nil {
		t.Fatal(err)
	}
	if len(made.Items) != many {
		t.Fatalf("%d pods", len(made.Items))
	}
	for _, p := range made.Items {
		group(t, "/kubepods/burstable/pod"+p.Metadata.UID)
		for i := range 2 {
			group(t, fmt.Sprintf("/kubepods/burstable/pod%s/%064x", p.Metadata.UID, i+1))
		}
	}
}

// group makes a group, which is removed at the end of the test.
func group(t *testing.T, at string) {
	t.Helper()
	dir := groupDir(at)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
}

// requests counts, by verb and resource, the agent's requests to the API server: the audit log has the agent's
// name.
func requests(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(scratch, "log/audit"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range bytes.Lines(text) {
		var e struct {
			UserAgent, Verb, Stage string
			ObjectRef              struct{ Resource, Name string }
		}
		if json.Unmarshal(line, &e) == nil && strings.HasPrefix(e.UserAgent, "plimsoll/") &&
			e.Stage == "RequestReceived" {
			counts[e.Verb+" "+strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Name, "/")]++
		}
	}
	return counts
}

// resident is the memory of a process.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestFullNode: beside 110 pods of two containers the agent asks the API server for one list and one watch of each
// resource, knows all pods within seconds, and stays small.
func TestFullNode(t *testing.T) {
	crowd(t)
	asked := requests(t)
	begin := time.Now()
	a := follower(t, "none")
	took := eventually(t, wait, func() string {
		if s := a.status(); s.Kubernetes == nil || !s.Kubernetes.Ready || s.Kubernetes.Pods < many ||
			s.Kubernetes.Matched < many {
			return fmt.Sprintf("%+v", s.Kubernetes)
		}
		return ""
	})
	t.Logf("all known %v after the start of the agent, %v after it answered", time.Since(begin).Round(ms),
		took.Round(ms))
	time.Sleep(3 * time.Second)
	now := requests(t)
	lists, watches := 0, 0
	for what, n := range now {
		n -= asked[what]
		verb, resource, _ := strings.Cut(what, " ")
		switch {
		case n == 0:
		case verb == "list":
			lists++
		case verb == "watch":
			watches++
		default:
			t.Errorf("%d times %s", n, what)
		}
		if n > 1 {
			t.Errorf("%d times %s %s", n, verb, resource)
		}
		if n > 0 {
			t.Logf("%d %s", n, what)
		}
	}
	if lists > 5 || watches == 0 || watches > 5 {
		t.Errorf("%d lists, %d watches: pods, the node, three ConfigMaps are five of each at most", lists, watches)
	}
	rss := resident(t, a.pid())
	t.Logf("RSS %.1f MiB", float64(rss)/(1<<20))
	if rss > mostRSS {
		t.Errorf("RSS %.1f MiB, at most %d", float64(rss)/(1<<20), mostRSS>>20)
	}
}

// groupDir is where a group is in the file system.
func groupDir(at string) string { return filepath.Join(cgrouptest.Root(), cluster.groups.Dir(at)) }

// pid is the agent's process: nsenter becomes it.
func (a *agent) pid() int { return a.cmd.Process.Pid }
