//go:build kube

package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rights are all that the agent needs of the API server.
func rights() []any {
	read := []string{"get", "list", "watch"}
	group := "rbac.authorization.k8s.io"
	named := func(kind string) object { return object{"name": "plimsoll", "apiGroup": group, "kind": kind} }
	subject := []object{{"kind": "ServiceAccount", "name": "plimsoll", "namespace": "kube-system"}}
	all := []any{
		object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "plimsoll", "namespace": "kube-system"}},
		object{"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": object{"name": "plimsoll"}, "rules": []object{
			{"apiGroups": []string{""}, "resources": []string{"pods", "nodes"}, "verbs": read},
			{"apiGroups": []string{""}, "resources": []string{"events"}, "verbs": []string{"create"}}}},
		object{"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": "plimsoll"},
			"roleRef": named("ClusterRole"), "subjects": subject},
	}
	for namespace, names := range map[string][]string{
		"kube-system":        {"ack-slo-config"},
		"koordinator-system": {"slo-controller-config", "ack-slo-pod-config"},
	} {
		at := object{"name": "plimsoll", "namespace": namespace}
		all = append(all,
			object{"apiVersion": group + "/v1", "kind": "Role", "metadata": at, "rules": []object{
				{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "resourceNames": names, "verbs": read}}},
			object{"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": at, "roleRef": named("Role"), "subjects": subject})
	}
	return all
}

// daemon is the agent as a pod of the host's network, with the host's control groups and a folder for its journal, and
// without privileges. The binary is the host's. No kube-proxy runs: the API server's own address is given. hostPID: on
// cgroup v1 cgroup.procs names only processes of the reader's PID namespace, and every group would look empty.
func daemon(dir string) object {
	mount := func(name, at string) object { return object{"name": name, "mountPath": at} }
	host := func(name, at string) object { return object{"name": name, "hostPath": object{"path": at}} }
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "plimsoll", "namespace": "kube-system"},
		"spec": object{"nodeName": nodeName, "hostNetwork": true, "hostPID": true, "serviceAccountName": "plimsoll", "terminationGracePeriodSeconds": 10,
			"containers": []object{{"name": "plimsoll", "image": "plimsoll.test/busybox:1", "imagePullPolicy": "Never",
				"command": []string{"/host/plimsoll", "run", "--kube", "--cgroup-root", "/host/cgroup", "--state-dir", "/host/state",
					"--config", "/host/config.yaml", "--listen", "127.0.0.1:0"},
				"env": []object{{"name": "KUBERNETES_SERVICE_HOST", "value": "10.99.0.1"}, {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
					{"name": "NODE_NAME", "valueFrom": object{"fieldRef": object{"fieldPath": "spec.nodeName"}}}},
				"resources": object{"requests": object{"cpu": "10m"}},
				"volumeMounts": []object{mount("groups", "/host/cgroup"), mount("state", "/host/state"),
					mount("binary", "/host/plimsoll"), mount("config", "/host/config.yaml")},
			}},
			"volumes": []object{host("groups", "/sys/fs/cgroup"), host("state", filepath.Join(dir, "state")),
				host("binary", cluster.binary), host("config", filepath.Join(dir, "config.yaml"))}}}
}

// TestAgentAsAPod: with a service account of few rights and without privileges it follows an annotation, and when its pod
// is deleted everything is as before.
func TestAgentAsAPod(t *testing.T) {
	p := start(t, want{name: "served", containers: []container{sleeper("a", "100m", "500m")}})
	before := files(t)
	configMap(t, "koordinator-system", "slo-controller-config", map[string]string{"cpu-burst-config": `{"clusterStrategy": {"cpuBurstPercent": 40}}`})
	for _, o := range rights() {
		apply(t, o)
	}
	a := newAgent(t, policy("none"))
	if err := os.Mkdir(a.state, 0o700); err != nil {
		t.Fatal(err)
	}
	self := &pod{t: t, namespace: "kube-system", name: "plimsoll"}
	apply(t, daemon(filepath.Dir(a.state)))
	t.Cleanup(self.delete)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(self.kubectl("logs", "plimsoll"))
			t.Log(output(a.command("status", "--json")))
		}
	})
	self.kubectl("wait", "--for=condition=Ready", "--timeout=90s", "pod/plimsoll") // the kubelet starts it again while another agent runs
	p.annotate(annotation + `={"policy": "cpuBurstOnly"}`)
	eventually(t, lockWait, func() string { return cmp.Diff(full(20*ms), p.bursts()) })
	p.annotate(annotation + `={"policy": "never"}`)
	p.event("CPUBurstInvalid", "never")
	p.stays(full(20 * ms))
	self.kubectl("delete", "pod", "plimsoll")
	same(t, before)
}
