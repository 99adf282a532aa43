package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestKubernetesLine(t *testing.T) {
	for _, c := range []struct {
		k    *Kubernetes
		want string
	}{
		{nil, ""},
		{&Kubernetes{},
			"kubernetes: the API server does not answer; it has not listed everything yet, and no pod is burst"},
		{&Kubernetes{Node: "n1", Reachable: true, Ready: true, Pods: 12, Matched: 11},
			"kubernetes: the API server answers; it listed 12 pods of node n1, 11 with groups"},
		{&Kubernetes{Node: "n1", Reachable: true, Ready: true, Pods: 2, Matched: 1,
			ConfigMaps: []ConfigMap{{"p/a", false}, {"k/b", true}}},
			"kubernetes: the API server answers; it listed 2 pods of node n1, 1 with groups; ConfigMaps: p/a " +
				"(absent), k/b"},
		{&Kubernetes{Node: "n1", Fault: "refused", Ready: true, Pods: 2, Matched: 1, Rejected: make([]Rejected, 2),
			RejectedNow: 3, RejectedTotal: 5},
			"kubernetes: the API server does not answer (refused); it listed 2 pods of node n1, 1 with groups; 3 " +
				"fields of configuration rejected"},
	} {
		var out bytes.Buffer
		if err := (Status{Mode: Active, Kubernetes: c.k}).Text(&out); err != nil {
			t.Fatal(err)
		}
		got := ""
		if i := strings.Index(out.String(), "kubernetes:"); i >= 0 {
			got, _, _ = strings.Cut(out.String()[i:], "\nself:")
		}
		got = oneLine(got)
		if got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestKubernetesMetrics(t *testing.T) {
	s := Status{Kubernetes: &Kubernetes{Reachable: true, Pods: 12, Matched: 11, Rejected: make([]Rejected, 1),
		RejectedNow: 2, RejectedTotal: 3, EventsDropped: 4}}
	names := []string{"plimsoll_kubernetes_reachable", "plimsoll_kubernetes_ready", "plimsoll_kubernetes_pods",
		"plimsoll_kubernetes_pods_matched", "plimsoll_kubernetes_rejected_total", "plimsoll_kubernetes_rejected",
		"plimsoll_kubernetes_events_dropped_total"}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCollector(func() (Status, error) { return s, nil }, Full))
	got := map[string]float64{}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if m := f.Metric[0]; strings.HasPrefix(f.GetName(), "plimsoll_kubernetes") {
			got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if diff := cmp.Diff(map[string]float64{names[0]: 1, names[1]: 0, names[2]: 12, names[3]: 11, names[4]: 3,
		names[5]: 2, names[6]: 4}, got); diff != "" {
		t.Error(diff)
	}
	s.Kubernetes = nil
	if n, err := testutil.GatherAndCount(r, names...); err != nil || n != 0 {
		t.Errorf("%d metrics without Kubernetes, %v", n, err)
	}
}

// TestRejectedAreProblems: object and field of what is rejected are named,
// and neither many nor long ones fill the screen.
func TestRejectedAreProblems(t *testing.T) {
	one := Rejected{Object: "Pod default/web", Key: "koordinator.sh/qosClass", Fault: `"lsr" is not one of LSR, LS`,
		Hint: "did you mean LSR?"}
	two := Rejected{Object: "ConfigMap kube-system/ack-slo-config", Key: "cpu-burst-config",
		Field: "clusterStrategy.policy", Fault: "is no text"}
	got := (&Kubernetes{Rejected: []Rejected{one, two}}).Problems()
	want := []string{
		`Pod default/web: koordinator.sh/qosClass: "lsr" is not one of LSR, LS: rejected, the last good value stays in force (hint: did you mean LSR?)`,
		"ConfigMap kube-system/ack-slo-config: cpu-burst-config: clusterStrategy.policy: is no text: rejected, the " +
			"last good value stays in force"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	two.Fault = strings.Repeat("ä", 1<<16)
	many := make([]Rejected, 200)
	for i := range many {
		many[i] = two
	}
	got = (&Kubernetes{Rejected: many, RejectedNow: 500}).Problems()
	if len(got) != 21 || len(strings.Join(got, "")) > 21*400 || !strings.HasPrefix(got[20], "480 more") {
		t.Errorf("%d problems of %d bytes, the last is %q", len(got), len(strings.Join(got, "")), got[len(got)-1])
	}
	if (*Kubernetes)(nil).Problems() != nil {
		t.Error("a problem without Kubernetes")
	}
}
