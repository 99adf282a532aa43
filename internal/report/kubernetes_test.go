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
		{&Kubernetes{}, "kubernetes: the API server does not answer; it has not told everything yet, and no pod is burst"},
		{&Kubernetes{Node: "n1", Reachable: true, Ready: true, Pods: 12, Matched: 11},
			"kubernetes: the API server answers; it told of 12 pods of node n1, 11 have groups"},
		{&Kubernetes{Node: "n1", Fault: "refused", Ready: true, Pods: 2, Matched: 1, Rejected: 3},
			"kubernetes: the API server does not answer (refused); it told of 2 pods of node n1, 1 have groups; 3 fields of configuration rejected"},
	} {
		var out bytes.Buffer
		if err := (Status{Mode: Active, Kubernetes: c.k}).Text(&out); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, line := range strings.Split(out.String(), "\n") {
			if strings.HasPrefix(line, "kubernetes:") {
				got = line
			}
		}
		if got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestKubernetesMetrics(t *testing.T) {
	s := Status{Kubernetes: &Kubernetes{Reachable: true, Pods: 12, Matched: 11, Rejected: 3}}
	names := []string{"plimsoll_kubernetes_reachable", "plimsoll_kubernetes_ready", "plimsoll_kubernetes_pods", "plimsoll_kubernetes_pods_matched", "plimsoll_kubernetes_rejected_total"}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCollector(func() (Status, error) { return s, nil }))
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
	if diff := cmp.Diff(map[string]float64{names[0]: 1, names[1]: 0, names[2]: 12, names[3]: 11, names[4]: 3}, got); diff != "" {
		t.Error(diff)
	}
	s.Kubernetes = nil
	if n, err := testutil.GatherAndCount(r, names...); err != nil || n != 0 {
		t.Errorf("%d metrics without Kubernetes, %v", n, err)
	}
}
