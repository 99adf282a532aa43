package kube

import (
	"testing"

	"plimsoll/internal/config"
	"plimsoll/internal/strategy"
)

// The settings of classes come from the ConfigMap. A pod of class LS may replace them, and no other pod.
func TestQOSLive(t *testing.T) {
	const qos = `{"clusterStrategy": {"lsClass": {"cpuQOS": {"enable": true}}, "beClass": {"cpuQOS": {"enable": true}}}}`
	for _, c := range []struct {
		class, annotation string
		want              strategy.Rank
	}{
		{"LS", "", strategy.Online},
		{"BE", "", strategy.Offline},
		{"SYSTEM", "", strategy.Neutral},
		{"", "", strategy.Neutral},
		{"LS", `{"groupIdentity": -1}`, strategy.Offline},
		{"BE", `{"groupIdentity": 2}`, strategy.Offline},
		{"LS", `{"groupIdentity": 7}`, strategy.Online},
	} {
		w := newWorld(t)
		w.groups.set(group("u1", "a"))
		pod := web(`{"policy": "auto"}`)
		pod.Labels = map[string]string{"koordinator.sh/qosClass": c.class}
		pod.Annotations["koordinator.sh/cpuQOS"] = c.annotation
		w.given(node(nil), pod, configMap("koordinator-system", "slo-controller-config", "resource-qos-config", qos))
		if got := w.pod(0).Containers[0].QOS.Rank(); got != c.want {
			t.Errorf("class %q, annotation %s: %s, want %s", c.class, c.annotation, got, c.want)
		}
		if !w.d.Configure(strategy.DefaultNode(), config.Tenants{}).Colocation.Enabled() {
			t.Error("the node's own strategy sets nothing")
		}
	}
}
