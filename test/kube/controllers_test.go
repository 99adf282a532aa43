//go:build kube

package kube

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// controlled has DaemonSets followed by Kubernetes' own scheduler and controller, for one test.
func controlled(t *testing.T) {
	t.Helper()
	for _, name := range []string{"scheduler", "controllers"} {
		part(t, "start", name)
		t.Cleanup(func() { part(t, "stop", name) })
	}
}

// podsOf lists the names of the pods that a DaemonSet's controller has made.
func podsOf(t *testing.T, daemonSet string) []string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name            string
				OwnerReferences []struct{ Kind, Name string }
			}
		}
	}
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pods", "--namespace", agents, "-o", "json")),
		&list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		for _, o := range p.Metadata.OwnerReferences {
			if o.Kind == "DaemonSet" && o.Name == daemonSet {
				names = append(names, p.Metadata.Name)
			}
		}
	}
	return names
}

// rolledOut waits until a DaemonSet has all its pods, in its present version, and returns the pod of this node.
func rolledOut(t *testing.T, daemonSet string) string {
	t.Helper()
	kubectl(t, "rollout", "status", "daemonset/"+daemonSet, "--namespace", agents, "--timeout=120s")
	var names []string
	eventually(t, wait, func() string { // an old one ends
		if names = podsOf(t, daemonSet); len(names) != 1 {
			return "pods: " + strings.Join(names, ", ")
		}
		return ""
	})
	return names[0]
}

// removed deletes a DaemonSet and waits for the end of its pods.
func removed(t *testing.T, daemonSet string) {
	t.Helper()
	kubectl(t, "delete", "daemonset", daemonSet, "--namespace", agents, "--ignore-not-found")
	eventually(t, wait, func() string { return strings.Join(podsOf(t, daemonSet), ", ") })
}

// TestDaemonSetOfTheController: the agent's pod is made by Kubernetes' own controller, on a node that other pods may
// not use, an update replaces it without a moment in which a burst is missing,
// and the documented end without Helm leaves nothing.
func TestDaemonSetOfTheController(t *testing.T) {
	p := start(t, want{name: "served", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}})
	before := files(t)
	kubectl(t, "taint", "node", nodeName, "dedicated=web:NoExecute")
	t.Cleanup(func() { kubectl(t, "taint", "node", nodeName, "dedicated-") })
	d := deploy(t)
	set, hook := d.daemonSet("plimsoll"), d.daemonSet("plimsoll-restore")
	for _, name := range []string{"plimsoll", "plimsoll-restore"} {
		removed(t, name) // nothing is made of the manifests as they are
	}
	controlled(t)
	t.Cleanup(func() { removed(t, "plimsoll"); removed(t, "plimsoll-restore") })
	apply(t, set)
	eventually(t, lockWait, func() string {
		if len(podsOf(t, "plimsoll")) == 0 {
			return "no pod is made"
		}
		return ""
	})
	first := rolledOut(t, "plimsoll")
	p.become(full(50 * ms))

	stop := watchBursts(t, p, full(50*ms))
	t.Cleanup(func() { stop() })
	kubectl(t, "set", "env", "daemonset/plimsoll", "GENERATION=2", "--namespace", agents)
	if second := rolledOut(t, "plimsoll"); second == first {
		t.Fatalf("%s was not replaced", first)
	}
	p.stays(full(50 * ms))
	if diff := stop(); diff != "" {
		t.Errorf("during the update:\n%s", diff)
	}
	p.annotate(annotation + `={"policy": "cpuBurstOnly", "cpuBurstPercent": 40}`)
	p.become(full(20 * ms))

	apply(t, hook)
	rolledOut(t, "plimsoll-restore")
	p.stays(none)
	removed(t, "plimsoll")
	removed(t, "plimsoll-restore")
	same(t, before)
}

// helm runs it with the chart's values for this machine.
func helm(t *testing.T, state string, args ...string) {
	t.Helper()
	text, err := json.Marshal([]object{{"name": "KUBERNETES_SERVICE_HOST", "value": "10.99.0.1"},
		{"name": "KUBERNETES_SERVICE_PORT", "value": "6443"}})
	if err != nil {
		t.Fatal(err)
	}
	front := []string{inside, filepath.Join(cluster.bin, "helm"), "--kubeconfig",
		filepath.Join(scratch, "pki/admin.kubeconfig"), "--namespace", "helmed"}
	if args[0] != "uninstall" {
		args = append(args, "../../deploy/helm/plimsoll", "--set",
			"name=helmed,stateDir="+state+",record.folder="+state+"-record,nri.folder="+filepath.Join(scratch,
				"containerd"), "--set-json", "env="+string(text))
	}
	if out, err := output(exec.Command("nsenter", append(front, args...)...)); err != nil {
		t.Fatal(out, err)
	}
}

// TestHelm: the chart is installed, upgraded without a moment in which a burst is missing, and uninstalled by Helm
// itself, whose hook has everything put back before anything is deleted.
func TestHelm(t *testing.T) {
	if _, err := image(); err != nil {
		t.Fatal(err)
	}
	p := start(t, want{name: "served", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}})
	before := files(t)
	agentNamespace(t, "helmed")
	t.Cleanup(func() { kubectl(t, "delete", "namespace", "helmed", "--wait=false") })
	controlled(t)
	state := filepath.Join(scratch, "state-helm")
	helm(t, state, "install", "helmed", "--wait", "--timeout=3m")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output(kubectlCommand("describe", "pods", "--namespace", "helmed")))
		}
	})
	p.become(full(50 * ms))
	stop := watchBursts(t, p, full(50*ms))
	t.Cleanup(func() { stop() })
	helm(t, state, "upgrade", "helmed", "--set", "podLabels.generation=second", "--wait", "--timeout=3m")
	p.stays(full(50 * ms))
	if diff := stop(); diff != "" {
		t.Errorf("during the upgrade:\n%s", diff)
	}
	helm(t, state, "uninstall", "helmed", "--wait", "--timeout=5m")
	eventually(t, wait, func() string { return kubectl(t, "get", "pods", "--namespace", "helmed", "-o", "name") })
	same(t, before)
}
