package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		{"LS", `{"enable": false}`, strategy.Neutral},
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
		w.d.Configure(strategy.DefaultNode(), config.Tenants{})
		if !w.d.node.Colocation.Enabled() {
			t.Error("the node's own strategy sets nothing")
		}
	}
}

// TestQOSAboveTheClassIsShown: a pod that prefers itself to what its class gets is not preferred,
// and status and an Event say so.
func TestQOSAboveTheClassIsShown(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a", "b"))
	pod := web("")
	pod.Labels = map[string]string{"koordinator.sh/qosClass": "LS"}
	pod.Annotations = map[string]string{config.QOSAnnotation: `{"enable": true, "groupIdentity": 2}`}
	const qos = `{"clusterStrategy": {"beClass": {"cpuQOS": {"enable": true}}}}`
	w.given(node(nil), pod, configMap("koordinator-system", "slo-controller-config", "resource-qos-config", qos))
	if got := w.pod(0).Containers[0].QOS.Rank(); got != strategy.Neutral {
		t.Errorf("the pod is %s", got)
	}
	want := []config.Cut{{Object: "Pod default/web", Key: config.QOSAnnotation, Asked: "online (2)",
		Given: "neutral (0)", Bound: "what its class gets"}}
	if diff := cmp.Diff(want, w.d.Status().Cuts); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"CPUBurstCut Pod default/web " + want[0].String()}, w.waiting()); diff != "" {
		t.Errorf("Events: -want +got\n%s", diff)
	}
}
