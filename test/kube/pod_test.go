//go:build kube

package kube

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// want is a pod to be made.
type want struct {
	name        string
	namespace   string // default, if ""
	labels      map[string]string
	annotations map[string]string
	containers  []container
}

// container of a pod; with the same request as limit the pod is Guaranteed.
type container struct {
	name, request, limit string // CPUs as Kubernetes writes them; "" for none
	command              []string
}

// sleeper uses no CPU.
func sleeper(name, request, limit string) container {
	return container{name, request, limit, []string{"sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait"}}
}

// hog uses one CPU.
func hog(name, request, limit string) container {
	return container{name, request, limit, []string{"sh", "-c", "trap 'exit 0' TERM; while :; do :; done"}}
}

type object = map[string]any

func (c container) manifest() object {
	requests, limits := object{}, object{}
	if c.request != "" {
		requests = object{"cpu": c.request, "memory": "32Mi"}
	}
	if c.limit != "" {
		limits = object{"cpu": c.limit, "memory": "32Mi"}
	}
	return object{"name": c.name, "image": "plimsoll.test/busybox:1", "imagePullPolicy": "Never",
		"command": c.command, "resources": object{"requests": requests, "limits": limits}}
}

// manifest is the pod in the format of the API server. There is no scheduler: it names its node.
func (w want) manifest() object {
	var containers []object
	for _, c := range w.containers {
		containers = append(containers, c.manifest())
	}
	return object{"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": w.name, "namespace": w.namespace, "labels": w.labels, "annotations": w.annotations},
		"spec": object{"nodeName": nodeName, "automountServiceAccountToken": false,
			"terminationGracePeriodSeconds": 1, "containers": containers}}
}

// pod is one that runs.
type pod struct {
	t               *testing.T
	namespace, name string
	root            string            // the kubelet's own, "" if it has none
	path            string            // of its control group
	containers      map[string]string // paths by name
}

// start makes a pod, waits until it runs and finds its control groups. It is deleted at the end of the test. More of
// its specification may be said.
func start(t *testing.T, w want, more ...func(spec object)) *pod {
	t.Helper()
	p := begin(t, w, more...)
	p.ready()
	p.find()
	return p
}

// starts makes several pods at once, and waits until all of them run.
func starts(t *testing.T, list ...want) []*pod {
	t.Helper()
	var pods []*pod
	for _, w := range list {
		pods = append(pods, begin(t, w))
	}
	for _, p := range pods {
		p.ready()
		p.find()
	}
	return pods
}

// begin makes a pod and does not wait.
func begin(t *testing.T, w want, more ...func(spec object)) *pod {
	t.Helper()
	usualKubelet(t)
	if w.namespace == "" {
		w.namespace = "default"
	}
	o := w.manifest()
	for _, m := range more {
		m(o["spec"].(object))
	}
	apply(t, o)
	p := &pod{t: t, namespace: w.namespace, name: w.name}
	t.Cleanup(p.leave)
	p.find()
	return p
}

func (p *pod) kubectl(args ...string) string {
	p.t.Helper()
	return kubectl(p.t, append([]string{"--namespace", p.namespace}, args...)...)
}

// delete ends the pod and waits until it is gone.
func (p *pod) delete() {
	p.t.Helper()
	p.ask(1)
	p.gone()
}

// ask deletes the pod, with as many seconds to end in order.
func (p *pod) ask(seconds int) {
	p.t.Helper()
	body := object{"gracePeriodSeconds": seconds}
	if seconds == 0 {
		body = nil
	}
	if _, err := request(http.MethodDelete, p.at(), "", body); err != nil && !gone(err) {
		p.t.Error(err)
	}
}

// gone waits until there is no such pod.
func (p *pod) gone() {
	p.t.Helper()
	eventually(p.t, wait, func() string {
		if _, err := request(http.MethodGet, p.at(), "", nil); gone(err) {
			return ""
		}
		return p.name + " is still there"
	})
}

// annotate says something on the pod, as kubectl does: NAME=TEXT, or NAME- to say it no more.
func (p *pod) annotate(annotation string) {
	p.t.Helper()
	name, text, says := strings.Cut(annotation, "=")
	annotations := object{name: text}
	if !says {
		annotations = object{strings.TrimSuffix(name, "-"): nil}
	}
	p.patch("", "merge", object{"metadata": object{"annotations": annotations}})
}

// find asks the API server for the ids and looks where the kubelet's cgroupfs driver puts the groups (pkg/kubelet/cm,
// podContainerManagerImpl.GetPodContainerName). A mirror pod's groups have the UID that its static pod has on the node.
func (p *pod) find() {
	p.t.Helper()
	type status struct {
		Name, ContainerID string
		State             struct{ Running *struct{} }
	}
	var o struct {
		Metadata struct {
			UID         string
			Annotations map[string]string
		}
		Status struct {
			QOSClass                                                             string
			ContainerStatuses, InitContainerStatuses, EphemeralContainerStatuses []status
		}
	}
	get(p.t, p.at(), &o)
	class := map[string]string{"Guaranteed": "", "Burstable": "burstable",
		"BestEffort": "besteffort"}[o.Status.QOSClass]
	uid := o.Metadata.UID
	if hash := o.Metadata.Annotations["kubernetes.io/config.hash"]; hash != "" {
		uid = hash
	}
	p.path = path.Join("/", p.root, "kubepods", class, "pod"+uid)
	p.containers = map[string]string{}
	for _, c := range slices.Concat(o.Status.ContainerStatuses, o.Status.InitContainerStatuses,
		o.Status.EphemeralContainerStatuses) {
		if _, id, _ := strings.Cut(c.ContainerID, "://"); c.State.Running != nil {
			p.containers[c.Name] = path.Join(p.path, id)
		}
	}
}

// groups are the paths of the pod, which goes by "", and of its containers.
func (p *pod) groups() map[string]string {
	all := maps.Clone(p.containers)
	all[""] = p.path
	return all
}

// bursts are those of the pod and its containers. A group that is not there has none.
func (p *pod) bursts() map[string]time.Duration {
	p.t.Helper()
	list := map[string]time.Duration{}
	for name, at := range p.groups() {
		burst, err := cluster.groups.Burst(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.t.Fatal(err)
		}
		list[name] = burst
	}
	return list
}

// limits are the quotas, and the bursts, of the pod and its containers.
func (p *pod) limits() map[string]cpu.Bandwidth {
	p.t.Helper()
	list := map[string]cpu.Bandwidth{}
	for name, at := range p.groups() {
		b, err := cluster.groups.Bandwidth(at)
		if err != nil {
			p.t.Fatal(err)
		}
		list[name] = b
	}
	return list
}

// bandwidth is a quota of the kubelet's with a burst.
func bandwidth(quota, burst time.Duration) cpu.Bandwidth {
	return cpu.Bandwidth{Quota: quota, Period: 100 * ms, Burst: burst}
}

// restart kills a container's processes and waits until the kubelet has made another one.
func (p *pod) restart(name string) {
	p.t.Helper()
	was := p.containers[name]
	pids, err := cluster.groups.Tasks(was)
	if err != nil || len(pids) == 0 {
		p.t.Fatalf("the tasks of %s: %v, %v", was, pids, err)
	}
	for _, pid := range pids {
		// The others end with the first one, which is the init of their PID namespace.
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			p.t.Fatal(err)
		}
	}
	eventually(p.t, wait, func() string {
		if p.find(); p.containers[name] == was || p.containers[name] == "" {
			return name + " is not restarted"
		}
		if _, err := cluster.groups.Inode(p.containers[name]); err != nil {
			return err.Error()
		}
		return ""
	})
}

// files reads all that the agent may ever write of every group of the kubelet's, byte by byte, but for the shares of
// the classes' groups, which the kubelet writes as pods come and go. The containers of some pods go by their names: a
// restart gives them other ids.
func files(t *testing.T, pods ...*pod) map[string]string {
	t.Helper()
	var names []string
	for _, p := range pods {
		for name, at := range p.containers {
			names = append(names, path.Base(at), name)
		}
	}
	named := strings.NewReplacer(names...)
	texts := map[string]string{}
	root := filepath.Join(cgrouptest.Root(), cluster.groups.Dir("/kubepods"))
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a group that went away
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if left(path.Join("/kubepods", strings.TrimPrefix(name, root))) {
				return fs.SkipDir
			}
			return nil
		}
		switch d.Name() {
		case "cpu.shares", "cpu.weight":
			if !strings.Contains(name, "/pod") {
				return nil
			}
			fallthrough
		case "cpu.max", "cpu.max.burst", "cpu.idle", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us":
			if text, err := os.ReadFile(name); err == nil {
				texts[named.Replace(strings.TrimPrefix(name, root))] = string(text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 4 {
		t.Fatalf("only %d files: %v", len(texts), texts)
	}
	return texts
}

// same compares the files with their former values.
func same(t *testing.T, before map[string]string, pods ...*pod) {
	t.Helper()
	if diff := cmp.Diff(before, files(t, pods...)); diff != "" {
		t.Errorf("not as before:\n%s", diff)
	}
}

// from puts a static pod's file into the kubelet's directory. When the file is removed it waits until the pod is gone.
func (p *pod) from(dir string, w want) (remove func()) {
	p.t.Helper()
	o := w.manifest()
	spec := o["spec"].(object)
	delete(spec, "nodeName") // it is this kubelet's
	// What the kubelet reports of a static pod before the API server has the pod is lost, and repeated after ten
	// seconds (pkg/kubelet/status, syncPeriod) or at the next change: that the pod is ready.
	for _, c := range spec["containers"].([]object) {
		c["readinessProbe"] = object{"exec": object{"command": []string{"sh", "-c", "exit 0"}},
			"initialDelaySeconds": 2, "periodSeconds": 1}
	}
	text, err := json.Marshal(o)
	if err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(dir, w.name+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, wait, func() string {
		if _, err := request(http.MethodGet, p.at(), "", nil); err != nil {
			return "the kubelet has not reported " + p.name
		}
		return ""
	})
	remove = sync.OnceFunc(func() {
		if err := os.Remove(file); err != nil {
			p.t.Error(err)
		}
		eventually(p.t, wait, func() string {
			if _, err := cluster.groups.Inode(p.path); p.path != "" && err == nil {
				return p.path + " is still there"
			}
			return ""
		})
	})
	p.t.Cleanup(remove)
	return remove
}
