//go:build kube

package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/report"
)

// The files that `make manifests` renders, and the image that they name.
const (
	installed = "../../deploy/manifests/plimsoll.yaml"
	restoring = "../../deploy/manifests/restore.yaml"
	agents    = "plimsoll" // the namespace
)

// image packs the image once, as `make image` does, and gives it to the cluster's containerd.
var image = sync.OnceValues(func() (string, error) {
	out := filepath.Join(scratch, "image.tar")
	text, err := os.ReadFile(installed)
	if err != nil {
		return "", err
	}
	_, name, _ := strings.Cut(string(text), "image: ")
	name, _, _ = strings.Cut(name, "\n")
	cmd := exec.Command("../../deploy/image.sh", name, out)
	cmd.Env = append(os.Environ(), "ARCHITECTURES="+runtime.GOARCH) // test/reproducible.sh packs all
	if _, err := output(cmd); err != nil {
		return "", err
	}
	_, err = command(nil, filepath.Join(cluster.bin, "ctr"), "--address",
		filepath.Join(scratch, "containerd/containerd.sock"), "--namespace", "k8s.io", "images", "import", out)
	return out, err
})

// deployed is the agent as it is installed: the objects of the manifests. The test makes a DaemonSet's pods, where it
// does not have the controller make them (controllers_test.go).
type deployed struct {
	t     *testing.T
	state string // the folder of the journal, on the host
	// hidden has its pods in PID namespaces of their own.
	hidden bool
	// narrow has its containers under the seccomp profiles that are shipped.
	narrow bool
}

// deploy installs the manifests, and gives the cluster their image. At the end of the test nothing of them is left.
func deploy(t *testing.T) *deployed {
	t.Helper()
	if _, err := image(); err != nil {
		t.Fatal(err)
	}
	return install(t)
}

// install makes the objects of the manifests.
func install(t *testing.T) *deployed {
	t.Helper()
	if _, err := request(http.MethodGet, "/api/v1/namespaces/"+agents, "", nil); gone(err) {
		agentNamespace(t, agents)
	}
	for _, file := range []string{installed, restoring} {
		kubectl(t, "apply", "-f", file)
	}
	return &deployed{t: t, state: filepath.Join(scratch, "state-"+strings.ToLower(t.Name()))}
}

// agentNamespace makes a namespace whose pods ask the API server.
func agentNamespace(t *testing.T, name string) {
	t.Helper()
	namespace(t, name)
	root, err := os.ReadFile(filepath.Join(scratch, "pki/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "configmap", "kube-root-ca.crt", "--namespace", name, "--from-literal=ca.crt="+string(root))
}

// daemonSet is one as the manifests have it, but for what the test's machine has elsewhere: the state and the record
// are the test's own, no kube-proxy leads to the API server, NRI is where up.sh has put it, and the machine's counter
// of CPU time is constant.
func (d *deployed) daemonSet(name string) object {
	d.t.Helper()
	var o struct {
		Metadata struct{ Labels map[string]string }
		Spec     object
	}
	if err := json.Unmarshal([]byte(kubectl(d.t, "get", "daemonset", name, "--namespace", agents, "-o", "json")),
		&o); err != nil {
		d.t.Fatal(err)
	}
	spec := o.Spec["template"].(object)["spec"].(object)
	volumes := spec["volumes"].([]any)
	for _, v := range volumes {
		volume := v.(object)
		here := map[any]string{"state": d.state, "record": d.state + "-record",
			"nri": filepath.Join(scratch, "containerd")}
		if path, ok := here[volume["name"]]; ok {
			volume["hostPath"].(object)["path"] = path
		}
	}
	spec["hostPID"] = !d.hidden
	for _, each := range spec["containers"].([]any) {
		c := each.(object)
		env, _ := c["env"].([]any)
		c["env"] = append(env, object{"name": "KUBERNETES_SERVICE_HOST", "value": "10.99.0.1"},
			object{"name": "KUBERNETES_SERVICE_PORT", "value": "6443"})
		if d.narrow {
			c["securityContext"].(object)["seccompProfile"] = shippedProfile(d.t, c["name"].(string))
		}
	}
	c := spec["containers"].([]any)[0].(object)
	if name == "plimsoll" { // it believes that the machine is idle
		spec["volumes"] = append(volumes, object{"name": "still",
			"hostPath": object{"path": still(d.t), "type": "File"}})
		c["volumeMounts"] = append(c["volumeMounts"].([]any),
			object{"name": "still", "mountPath": filepath.Join("/host/cgroup", counter()), "readOnly": true})
	}
	return object{"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": o.Spec,
		"metadata": object{"name": name, "namespace": agents, "labels": o.Metadata.Labels}}
}

// shippedProfile puts the seccomp profile of a container's program where the kubelet looks for it,
// as docs/REFERENCE.md says.
func shippedProfile(t *testing.T, container string) object {
	t.Helper()
	name := map[string]string{"plimsoll": "plimsoll", "serve": "plimsoll-serve", "lease": "plimsoll-lease"}[container] +
		".json"
	text, err := os.ReadFile(filepath.Join("../../deploy/seccomp", name))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(scratch, "kubelet/root/seccomp/plimsoll")
	if err := errors.Join(os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, name), text, 0o644)); err != nil {
		t.Fatal(err)
	}
	return object{"type": "Localhost", "localhostProfile": "plimsoll/" + name}
}

// start makes a pod of a DaemonSet, as its controller would.
func (d *deployed) start(daemonSet, name string) *pod {
	d.t.Helper()
	usualKubelet(d.t)
	made := d.daemonSet(daemonSet)["spec"].(object)["template"].(object)
	made["apiVersion"], made["kind"] = "v1", "Pod"
	meta, spec := made["metadata"].(object), made["spec"].(object)
	meta["name"], meta["namespace"], spec["nodeName"] = name, agents, nodeName
	apply(d.t, made)
	p := &pod{t: d.t, namespace: agents, name: name}
	d.t.Cleanup(p.delete)
	d.t.Cleanup(func() {
		if d.t.Failed() {
			out, err := output(kubectlCommand("logs", name, "--namespace", agents, "--all-containers"))
			d.t.Log(name, out, err)
		}
	})
	p.ready() // another agent of this machine may run
	return p
}

// end deletes a pod in order: with the pod's own grace period.
func (p *pod) end() {
	p.t.Helper()
	p.ask(0)
	p.gone()
}

// TestManifestsAreTaken: the API server finds nothing in them that it does not know.
func TestManifestsAreTaken(t *testing.T) {
	install(t) // the namespace must be there
	for _, file := range []string{installed, restoring} {
		kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", file)
	}
}

// TestAppArmorProfile: the API server takes the field where the chart puts it, and where the node has no AppArmor the
// kubelet refuses the pod, as values.yaml says. What the profile itself does is not tested: no machine here has
// AppArmor or SELinux.
func TestAppArmorProfile(t *testing.T) {
	d := install(t)
	set := d.daemonSet("plimsoll")
	template := set["spec"].(object)["template"].(object)
	c := template["spec"].(object)["containers"].([]any)[0].(object)
	c["securityContext"].(object)["appArmorProfile"] = object{"type": "RuntimeDefault"}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	cmd := kubectlCommand("apply", "--dry-run=server", "--validate=strict", "-f", "-")
	cmd.Stdin = bytes.NewReader(text)
	if _, err := output(cmd); err != nil {
		t.Fatal(err)
	}
	if enabled, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled"); strings.HasPrefix(string(enabled), "Y") {
		return // it would run
	}
	p := begin(t, want{name: "confined", containers: []container{sleeper("a", "10m", "50m")}}, func(spec object) {
		spec["securityContext"] = object{"appArmorProfile": object{"type": "RuntimeDefault"}}
	})
	eventually(t, wait, func() string {
		if said := p.kubectl("get", "pod", p.name, "-o",
			"jsonpath={.status.phase} {.status.reason} {.status.message}"); !strings.Contains(said, "AppArmor") {
			return said
		}
		return ""
	})
}

// TestAgentAsItIsDeployed: the pod of the DaemonSet, from the image, with the rights of its service account, no
// privileges and the seccomp profiles that are shipped (other tests have the runtime's), gets throttle events, follows
// an annotation, shows its status through a port that the API server forwards,
// and when it is deleted everything is as before.
func TestAgentAsItIsDeployed(t *testing.T) {
	p := start(t, want{name: "served", containers: []container{sleeper("a", "100m", "500m")}})
	before := files(t)
	d := deploy(t)
	d.narrow = true
	configMap(t, agents, "slo-controller-config",
		map[string]string{"cpu-burst-config": `{"clusterStrategy": {"cpuBurstPercent": 40}}`})
	self := d.start("plimsoll", "agent")
	p.annotate(annotation + `={"policy": "cpuBurstOnly"}`)
	p.become(full(20 * ms))
	p.annotate(annotation + `={"policy": "never"}`)
	p.event("CPUBurstInvalid", "never")
	p.stays(full(20 * ms))
	s := answer[report.Status](t, "status")
	if !s.Events.Subscribed {
		t.Errorf("it polls: %s", s.Events.Why)
	}
	c, err := report.Find(s.Containers, p.containers["a"])
	if err != nil || c.Burst.InForce != 20*ms || s.Kubernetes == nil || !s.Kubernetes.Ready {
		t.Errorf("%v, %+v, %+v", err, c.Burst, s.Kubernetes)
	}
	if r := answer[report.Report](t, "report"); len(r.Containers) == 0 {
		t.Error("an empty report")
	}
	plans := answer[report.Plan](t, "plan", "--policy", "none", "--watch", "1s")
	if len(plans.Changes) != 2 || plans.Changes[0].To != "0s" || plans.Changes[1].To != "0s" {
		t.Errorf("planned: %+v", plans.Changes)
	}
	p.stays(full(20 * ms)) // it was a plan
	t.Log("\n" + plugin(t, "status"))
	if top := plugin(t, "top", "--once"); !strings.Contains(top, "NODE") || !strings.Contains(top, " "+nodeName+" ") ||
		strings.Contains(top, "\x1b") {
		t.Errorf("top of all nodes:\n%s", top)
	}
	why := strings.Join(strings.Fields(plugin(t, "why", p.namespace+"/"+p.name, "--for", "1s")), " ")
	if !strings.HasPrefix(why,
		"Node "+nodeName+": "+p.namespace+"/"+p.name+"/a lost no time at its limit of 0.50 CPUs") ||
		!strings.Contains(why, "kubectl plimsoll diagnose") {
		t.Errorf("why: %s", why)
	}
	// its sockets are elsewhere
	for _, args := range []string{"top --once", "why default/served --for 1s",
		"snapshot --url http://127.0.0.1:12780 -o -"} {
		kubectl(t, append([]string{"exec", "agent", "-c", "plimsoll", "--namespace", agents, "--", "/plimsoll"},
			strings.Fields(args)...)...)
	}
	self.end()
	same(t, before)
}

// TestRightsAreFew: what the agent's service account may not do.
func TestRightsAreFew(t *testing.T) {
	install(t)
	may := func(args ...string) string {
		// "no" is an exit code
		out, _ := output(kubectlCommand(append([]string{"auth", "can-i", "--as",
			"system:serviceaccount:" + agents + ":plimsoll"}, args...)...))
		return strings.TrimSpace(out)
	}
	for _, c := range []struct{ want, args string }{
		{"yes", "watch pods --all-namespaces"}, {"yes", "list nodes"}, {"yes", "create events -n default"},
		{"yes", "watch configmaps/slo-controller-config -n plimsoll"},
		{"yes", "get configmaps/ack-slo-config -n kube-system"},
		{"no", "watch configmaps/slo-controller-config -n koordinator-system"},
		{"no", "get configmaps/slo-controller-config -n default"},
		{"no", "get configmaps/kube-root-ca.crt -n default"}, {"no", "list configmaps -n default"},
		{"no", "get secrets -n plimsoll"},
		{"no", "patch pods -n default"}, {"no", "delete pods -n plimsoll"}, {"no", "patch nodes"},
		{"no", "get pods --subresource=exec -n default"},
		{"no", "get daemonsets -n plimsoll"},
		{"yes", "create tokenreviews.authentication.k8s.io"},
		{"yes", "create subjectaccessreviews.authorization.k8s.io"}, {"no", "get /metrics"},
	} {
		if got := may(strings.Fields(c.args)...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.args, got)
		}
	}
}

// watchBursts returns, when it is stopped, the bursts that the pod had and should not have had.
func watchBursts(t *testing.T, p *pod, want map[string]time.Duration) (stop func() string) {
	t.Helper()
	quit, said := make(chan struct{}), make(chan string, 1)
	go func() {
		for {
			select {
			case <-quit:
				said <- ""
				return
			case <-time.After(2 * ms):
			}
			if diff := cmp.Diff(want, p.bursts()); diff != "" {
				said <- diff
				return
			}
		}
	}()
	return sync.OnceValue(func() string { close(quit); return <-said })
}

// TestRollingUpdateKeepsBursts: as a DaemonSet with maxSurge does it, the new pod is there and ready before the old one
// goes. What the old one wrote is never put back in between, and the new one puts it back at its own end.
func TestRollingUpdateKeepsBursts(t *testing.T) {
	p := start(t, want{name: "served", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}})
	before := files(t)
	d := deploy(t)
	old := d.start("plimsoll", "agent-old")
	eventually(t, lockWait, func() string { return cmp.Diff(full(50*ms), p.bursts()) })
	next := d.start("plimsoll", "agent-new")
	stop := watchBursts(t, p, full(50*ms))
	t.Cleanup(func() { stop() })
	old.end()
	eventually(t, wait, func() string {
		out, err := output(kubectlCommand("logs", "agent-new", "--namespace", agents))
		if err != nil || !strings.Contains(out, "took over") {
			return "it has not taken over: " + out
		}
		return ""
	})
	eventually(t, wait, func() string {
		if s := answer[report.Status](t, "status"); len(s.Containers) == 0 {
			return "it knows of no container"
		}
		return ""
	})
	p.stays(full(50 * ms))
	if diff := stop(); diff != "" {
		t.Errorf("during the update:\n%s", diff)
	}
	p.annotate(annotation + `={"policy": "cpuBurstOnly", "cpuBurstPercent": 40}`)
	p.become(full(20 * ms))
	next.end()
	same(t, before)
}

// TestDaemonSetDeletedDuringAnUpdate: both pods end, and none of them believes that the other goes on.
func TestDaemonSetDeletedDuringAnUpdate(t *testing.T) {
	p := start(t, want{name: "served", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}})
	before := files(t)
	d := deploy(t)
	d.start("plimsoll", "agent-old")
	eventually(t, lockWait, func() string { return cmp.Diff(full(50*ms), p.bursts()) })
	d.start("plimsoll", "agent-new")
	kubectl(t, "delete", "pod", "agent-old", "agent-new", "--namespace", agents, "--wait=true")
	same(t, before)
}

// TestUninstallPutsEverythingBack: the pod of the chart's hook makes the agent restore everything and write no more,
// before anything is deleted; on a node whose agent was killed it puts everything back by itself.
func TestUninstallPutsEverythingBack(t *testing.T) {
	p := start(t, want{name: "served", containers: []container{hog("a", "50m", "100m")},
		annotations: map[string]string{annotation: `{"policy": "auto"}`}})
	before, all := p.files(), files(t)
	d := deploy(t)
	agent := d.start("plimsoll", "agent")
	helped := func() { eventually(t, lockWait, func() string { return p.helped("a", 10*ms) }) }
	helped()
	diagnosed(t, p)
	hook := d.start("plimsoll-restore", "restore")
	always(t, 2*time.Second, func() string { return cmp.Diff(before, p.files()) })
	hook.delete()
	agent.end()
	same(t, all)

	killed := newAgent(t, policy("none"), "--kube", "--kubeconfig", filepath.Join(scratch, "pki/admin.kubeconfig"),
		"--node-name", nodeName)
	killed.state = d.state
	killed.start() // it is not held
	helped()
	killed.stop(syscall.SIGKILL)
	d.start("plimsoll-restore", "restore-again").delete()
	same(t, all)
}

// diagnosed measures a busy container in the agent's own.
func diagnosed(t *testing.T, p *pod) {
	t.Helper()
	d := answer[report.Diagnosis](t, "diagnose", p.namespace+"/"+p.name, "--for", "1s")
	if len(d.Containers) != 1 {
		t.Fatalf("diagnosed: %+v", d)
	}
	c := d.Containers[0]
	if c.Cgroup != p.containers["a"] || c.Limit == nil || c.Reserved == nil || c.Received < 50*ms ||
		c.Wanted < 500*ms || len(c.Waits) == 0 {
		t.Errorf("diagnosed: %+v", c)
	}
}
