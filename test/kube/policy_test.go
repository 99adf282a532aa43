//go:build kube

package kube

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	annotation = "koordinator.sh/cpuBurst"
	// reaction is how long after the API server's answer a change may take until it is in force.
	reaction = time.Second
)

// follower is an agent that follows the API server, with a policy of its own for pods without any other.
func follower(t *testing.T, own string) *agent {
	t.Helper()
	a := newAgent(t, policy(own), following()...)
	a.start()
	return a
}

// following are the arguments of an agent that follows the API server. It reads the ConfigMaps of Koordinator and ACK,
// as an administrator names them.
func following() []string {
	return []string{"--kube", "--kubeconfig", filepath.Join(scratch, "pki/admin.kubeconfig"), "--node-name", nodeName,
		"--kube-configmaps",
		"koordinator-system/slo-controller-config,kube-system/ack-slo-config,koordinator-system/ack-slo-pod-config"}
}

// TestNamespaceThatNobodyNamed: whoever makes the namespace of Koordinator on a cluster without it sets no policy.
func TestNamespaceThatNobodyNamed(t *testing.T) {
	p := start(t, want{name: "trusting", containers: []container{sleeper("a", "100m", "500m")}})
	clusterStrategy(t, `"policy": "cpuBurstOnly"`)
	a := newAgent(t, policy("none"), "--kube", "--kubeconfig", filepath.Join(scratch, "pki/admin.kubeconfig"),
		"--node-name", nodeName)
	a.start()
	p.stays(none)
	configMap(t, "kube-system", "ack-slo-config",
		map[string]string{"cpu-burst-config": `{"clusterStrategy": {"policy": "cpuBurstOnly"}}`})
	p.become(full(50 * ms))
}

// configMap makes one, or changes it. It is deleted at the end of the test. The namespace is made if need be.
func configMap(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	_, err := request(http.MethodPost, "/api/v1/namespaces", "", object{"metadata": object{"name": namespace}})
	if err != nil && !conflicts(err) {
		t.Fatal(err)
	}
	apply(t, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": namespace, "name": name},
		"data": data})
	t.Cleanup(func() { unconfigured(t, namespace, name) })
}

// unconfigured deletes a ConfigMap.
func unconfigured(t *testing.T, namespace, name string) {
	t.Helper()
	_, err := request(http.MethodDelete, "/api/v1/namespaces/"+namespace+"/configmaps/"+name, "", nil)
	if err != nil && !gone(err) {
		t.Error(err)
	}
}

func clusterStrategy(t *testing.T, fields string) {
	t.Helper()
	configMap(t, "koordinator-system", "slo-controller-config", map[string]string{
		"cpu-burst-config":          `{"clusterStrategy": {` + fields + `}}`,
		"resource-threshold-config": `{"clusterStrategy": {"enable": true}}`, // another program's
	})
}

// full is what a pod of one container, named a, has with a burst; none is without.
func full(limit time.Duration) map[string]time.Duration {
	return map[string]time.Duration{"": limit, "a": limit}
}

var none = map[string]time.Duration{"": 0, "a": 0}

// become waits until the pod's bursts are as wanted, and says how long that took. The time of the kubectl that asked
// for the change has passed already.
func (p *pod) become(want map[string]time.Duration) time.Duration {
	p.t.Helper()
	took := eventually(p.t, wait, func() string { return cmp.Diff(want, p.bursts()) })
	p.t.Logf("%s: %v after %v", p.name, want, took.Round(ms))
	return took
}

// TestReaction: ten changes are in force within a second of the moment at which the API server's watch sends them.
func TestReaction(t *testing.T) {
	p := start(t, want{name: "quick", containers: []container{sleeper("a", "100m", "500m")}})
	received := p.watch()
	follower(t, "none")
	for i := range 10 {
		percent := 20 + 10*(i%2)
		text := fmt.Sprintf(`{"policy": "cpuBurstOnly", "cpuBurstPercent": %d, "round": %d}`, percent, i)
		p.annotate(annotation + "=" + text)
		p.become(full(time.Duration(percent) * ms / 2))
		inForce := time.Now()
		took := inForce.Sub(received(text))
		t.Logf("in force %v after the watch's event", took.Round(ms))
		if took > reaction {
			t.Errorf("change %d took %v, at most %v", i, took, reaction)
		}
	}
}

// watch follows the pod's annotation as the API server sends it. received waits for a text, and says when it came.
func (p *pod) watch() (received func(text string) time.Time) {
	p.t.Helper()
	cmd := kubectlCommand("get", "pod", p.name, "--namespace", p.namespace, "--watch", "-o",
		`go-template={{with .metadata.annotations}}{{index . "`+annotation+`"}}{{end}}{{"\n"}}`)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var mu sync.Mutex
	came := map[string]time.Time{}
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			now := time.Now()
			mu.Lock()
			if _, ok := came[lines.Text()]; !ok {
				came[lines.Text()] = now
			}
			mu.Unlock()
		}
	}()
	return func(text string) (at time.Time) {
		p.t.Helper()
		eventually(p.t, wait, func() string {
			mu.Lock()
			defer mu.Unlock()
			if at = came[text]; at.IsZero() {
				return "the watch has not sent " + text
			}
			return ""
		})
		return at
	}
}

// stays checks that nothing changes.
func (p *pod) stays(want map[string]time.Duration) {
	p.t.Helper()
	always(p.t, reaction, func() string { return cmp.Diff(want, p.bursts()) })
}

// TestAnnotationSwitchesOnePod: an annotation is followed live, on one pod and no other, and so is its removal.
func TestAnnotationSwitchesOnePod(t *testing.T) {
	pods := starts(t, want{name: "one", containers: []container{sleeper("a", "100m", "500m")}},
		want{name: "other", containers: []container{sleeper("a", "100m", "500m")}})
	one, other := pods[0], pods[1]
	before := files(t)
	a := follower(t, "none")
	one.stays(none)
	one.annotate(annotation + `={"policy": "auto"}`)
	one.become(full(50 * ms))
	one.annotate(annotation + `={"policy": "cpuBurstOnly", "cpuBurstPercent": 20}`)
	one.become(full(10 * ms))
	other.stays(none)
	one.annotate(annotation + "-")
	one.become(none)
	one.annotate(`alibabacloud.com/cpuBurst={"policy": "cpuBurstOnly", "cpuBurstPercent": 40}`)
	one.become(full(20 * ms))
	one.annotate(annotation + `={"policy": "none"}`) // the newer wins
	one.become(none)
	one.annotate(annotation + `={"policy": "cpuBurstOnly"}`)
	one.become(full(50 * ms))
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestBadAnnotationKeepsTheLastGoodValue: and says on the pod itself what is wrong with it.
func TestBadAnnotationKeepsTheLastGoodValue(t *testing.T) {
	p := start(t, want{name: "bad", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly", "cpuBurstPercent": 40}`}})
	follower(t, "none")
	p.become(full(20 * ms))
	for _, c := range []struct{ text, says string }{
		{`{"policy": "cpuBurstOnly", "cpuBurstPercent": 10001}`, "cpuBurstPercent"},
		{`{"policy": "cpuBurstOnly`, annotation},
	} {
		p.annotate(annotation + "=" + c.text)
		p.event("CPUBurstInvalid", c.says)
		p.stays(full(20 * ms))
	}
	p.annotate(annotation + `={"policy": "cpuBurstOnly", "cpuBurstPercent": 60}`)
	p.become(full(30 * ms))
}

// event waits for a Warning on the pod.
func (p *pod) event(reason, says string) {
	p.t.Helper()
	event(p.t, p.namespace, p.name, reason, says)
}

// warnings lists what is said about an object for a reason.
func warnings(t *testing.T, namespace, name, reason string) (messages []string) {
	t.Helper()
	var list struct {
		Items []struct{ Type, Message string }
	}
	get(t, "/api/v1/namespaces/"+namespace+"/events?fieldSelector=involvedObject.name%3D"+name+",reason%3D"+reason,
		&list)
	for _, e := range list.Items {
		if e.Type == "Warning" {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// event waits for a Warning on an object.
func event(t *testing.T, namespace, name, reason, says string) {
	t.Helper()
	eventually(t, wait, func() string {
		list := warnings(t, namespace, name, reason)
		for _, m := range list {
			if strings.Contains(m, says) {
				t.Log(m)
				return ""
			}
		}
		return fmt.Sprintf("no Warning %s that speaks of %s: %q", reason, says, list)
	})
}

// TestConfigMapOfTheCluster: what Koordinator's ConfigMap says is followed live; an annotation has the last word, field
// by field; a text that cannot be read changes nothing; without the ConfigMap the node's own file counts again.
func TestConfigMapOfTheCluster(t *testing.T) {
	pods := starts(t, want{name: "plain", containers: []container{sleeper("a", "100m", "500m")}},
		want{name: "asks", containers: []container{sleeper("a", "100m", "500m")},
			annotations: map[string]string{annotation: `{"cpuBurstPercent": 20}`}})
	plain, asks := pods[0], pods[1]
	before := files(t)
	a := follower(t, "none")
	clusterStrategy(t, `"policy": "cpuBurstOnly"`)
	plain.become(full(50 * ms))
	asks.become(full(10 * ms))
	clusterStrategy(t, `"policy": "cpuBurstOnly", "cpuBurstPercent": 40`)
	plain.become(full(20 * ms))
	asks.stays(full(10 * ms))
	clusterStrategy(t, `"policy": "cpuBurstOnly", "cpuBurstPercent": "many"`)
	event(t, "koordinator-system", "slo-controller-config", "CPUBurstInvalid", "clusterStrategy.cpuBurstPercent")
	plain.stays(full(20 * ms))
	if k := a.status().Kubernetes; len(k.Rejected) != 1 || k.RejectedTotal != 1 ||
		k.Rejected[0].Field != "clusterStrategy.cpuBurstPercent" {
		t.Errorf("%+v rejected (%d in all), not 1", k.Rejected, k.RejectedTotal)
	}
	clusterStrategy(t, `"policy": `)
	event(t, "koordinator-system", "slo-controller-config", "CPUBurstInvalid", "cpu-burst-config")
	plain.stays(full(20 * ms))
	unconfigured(t, "koordinator-system", "slo-controller-config")
	plain.become(none)
	asks.become(none)
	same(t, before)
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestNodeStrategies: the first entry that chooses the node lays its fields over those of the cluster, also when the
// node's labels change.
func TestNodeStrategies(t *testing.T) {
	p := start(t, want{name: "labelled", containers: []container{sleeper("a", "100m", "500m")}})
	configMap(t, "kube-system", "ack-slo-config", map[string]string{"cpu-burst-config": `{
		"clusterStrategy": {"policy": "cpuBurstOnly", "cpuBurstPercent": 20},
		"nodeStrategies": [{"name": "web", "nodeSelector": {"matchLabels": {"pool": "web"}}, "cpuBurstPercent": 60},
			{"name": "all", "nodeSelector": {}, "cpuBurstPercent": 80}]}`})
	follower(t, "none")
	p.become(full(40 * ms))
	t.Cleanup(func() { kubectl(t, "label", "node", nodeName, "pool-") })
	kubectl(t, "label", "node", nodeName, "pool=web")
	p.become(full(30 * ms))
}

// TestNamespaces: ACK's lists of namespaces; disabled wins, and the annotation of a pod wins over both.
func TestNamespaces(t *testing.T) {
	namespace(t, "bursts")
	namespace(t, "rests")
	t.Cleanup(func() { kubectl(t, "delete", "namespace", "bursts", "rests", "--wait=false") })
	pods := starts(t, want{name: "in", namespace: "bursts", containers: []container{sleeper("a", "100m", "500m")}},
		want{name: "out", namespace: "rests", containers: []container{sleeper("a", "100m", "500m")}},
		want{name: "asks", namespace: "rests", containers: []container{sleeper("a", "100m", "500m")},
			annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}},
		want{name: "beside", containers: []container{sleeper("a", "100m", "500m")}})
	in, out, asks, beside := pods[0], pods[1], pods[2], pods[3]
	follower(t, "none")
	lists := func(text string) {
		configMap(t, "koordinator-system", "ack-slo-pod-config",
			map[string]string{"cpu-burst": text, "memory-qos": "{}"})
	}
	lists(`{"enabledNamespaces": ["bursts", "rests"], "disabledNamespaces": ["rests"]}`)
	in.become(full(50 * ms))
	asks.become(full(50 * ms))
	out.stays(none)
	beside.stays(none)
	lists(`{"enabledNamespaces": ["rests"]}`)
	out.become(full(50 * ms))
	in.become(none)
}

// TestClassesThatAreNotBurst: LSE and LSR have exclusive CPUs and BE comes last, whatever the policy says.
func TestClassesThatAreNotBurst(t *testing.T) {
	var wanted []want
	for _, class := range []string{"LSE", "LSR", "BE", "LS", ""} {
		labels := map[string]string{}
		if class != "" {
			labels["koordinator.sh/qosClass"] = class
		}
		wanted = append(wanted, want{name: "class-" + strings.ToLower(class) + "x", labels: labels,
			containers: []container{sleeper("a", "50m", "100m")}})
	}
	pods := starts(t, wanted...)
	follower(t, "cpuBurstOnly")
	for _, p := range pods[3:] {
		p.become(full(10 * ms))
	}
	for _, p := range pods[:3] {
		p.stays(none)
	}
}
