package kube

import (
	"testing"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestStrategyOfAContainer: what the node's own file says of a container, its overrides included, is what the cluster's
// strategies are laid over. A container of a pod that nobody has told of is not burst, and has its class nevertheless.
func TestStrategyOfAContainer(t *testing.T) {
	file := strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 400, CFSQuotaBurstPercent: 200, StartupSeconds: 7}
	const cluster = `{"clusterStrategy": {"cpuBurstPercent": 700},
		"nodeStrategies": [{"nodeSelector": {"matchLabels": {"pool": "web"}}, "cpuBurstPercent": 800}]}`
	const classes = `{"clusterStrategy": {"beClass": {"cpuQOS": {"enable": true}}}}`
	for name, c := range map[string]struct {
		cluster string
		labels  map[string]string
		unknown bool
		policy  strategy.Policy
		burst   int64
	}{
		"the file alone": {policy: strategy.Auto, burst: 400},
		"the cluster":    {cluster: cluster, policy: strategy.Auto, burst: 700},
		"the node's labels": {cluster: cluster, labels: map[string]string{"pool": "web"}, policy: strategy.Auto,
			burst: 800},
		"a pod of nobody":  {cluster: cluster, unknown: true, policy: strategy.None, burst: 400},
		"and no ConfigMap": {unknown: true, policy: strategy.None, burst: 400},
		"a pool of nobody's": {cluster: cluster, labels: map[string]string{"pool": "x"}, policy: strategy.Auto,
			burst: 700},
	} {
		w := newWorld(t)
		found := group("u1", "a")
		found.Containers[0].Strategy, found.Containers[0].Class = file, workload.ClassBE
		w.groups.set(found)
		pod, slo := web(""), configMap("koordinator-system", "slo-controller-config", "resource-qos-config", classes)
		if c.unknown {
			pod.UID = "another"
		}
		if c.cluster != "" {
			slo.Data["cpu-burst-config"] = c.cluster
		}
		w.given(node(c.labels), pod, slo)
		want := file
		want.Policy, want.CPUBurstPercent = c.policy, c.burst
		if got := w.pod(0).Containers[0]; got.Strategy != want || got.QOS.Rank() != strategy.Offline {
			t.Errorf("%s: %+v, %s; want %+v, offline", name, got.Strategy, got.QOS.Rank(), want)
		}
	}
}

// TestChangesOfTheNodeAreAnnounced: of its classes and of its bounds on CPUs above limits too, each once.
func TestChangesOfTheNodeAreAnnounced(t *testing.T) {
	w := newWorld(t)
	slo := configMap("koordinator-system", "slo-controller-config", "cpu-burst-config", "{}")
	for _, c := range []struct {
		key, text string
		holds     func(strategy.Node) bool
	}{
		{"cpu-burst-config", `{"clusterStrategy": {"policy": "auto"}}`,
			func(n strategy.Node) bool { return n.Policy == strategy.Auto }},
		{"resource-qos-config", `{"clusterStrategy": {"beClass": {"cpuQOS": {"enable": true}}}}`,
			func(n strategy.Node) bool { return n.Policy == strategy.Auto && n.Colocation.BE.Enable }},
		{"resource-threshold-config", `{"clusterStrategy": {"enable": true}}`,
			func(n strategy.Node) bool { return n.Colocation.BE.Enable && n.Colocation.Suppress.Enable }},
		{"plimsoll-tenants", `{"extraCoresPerNode": 2}`,
			func(n strategy.Node) bool { return n.Colocation.Suppress.Enable && n.Extra.PerNode.CPUs == 2 }},
	} {
		slo = slo.DeepCopy()
		slo.Data[c.key] = c.text
		w.given(node(nil), slo)
		w.given(node(nil), slo)
		var last strategy.Node
		for len(w.node) > 0 {
			if last = <-w.node; c.holds(last) && len(w.node) > 0 {
				t.Errorf("%s: announced again: %+v", c.key, <-w.node)
			}
		}
		if !c.holds(last) {
			t.Errorf("%s is not announced: %+v", c.key, last)
		}
	}
}
