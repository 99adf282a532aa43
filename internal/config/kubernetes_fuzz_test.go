package config

import (
	"encoding/json"
	"testing"

	"plimsoll/internal/strategy"
)

// Whatever the text: what comes out is in range, every complaint names its place, and what encoding/json takes into the
// peers' type without a complaint of ours means the same here.
func FuzzAnnotation(f *testing.F) {
	for _, seed := range []string{`{"policy": "auto"}`,
		`{"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1}`,
		`{"POLICY": "none", "policy": null}`, `{`, `[]`, `null`, `{"policy": 1e3}`, `{"cpuBurstPercent": 1e2}`, "{\"policy\": \"\xff\"}", `{"a": {"b": [[[]]]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, old, bad := ParseAnnotations("o", map[string]string{Annotation: text}, strategy.Patch{})
		if err := p.Check(); err != nil || old {
			t.Fatalf("%q: %v, old %v", text, err, old)
		}
		complain(t, text, bad)
		var peer strategy.Patch
		err := json.Unmarshal([]byte(text), &peer)
		if len(bad) > 0 || err != nil {
			return
		}
		peer.SharePoolThresholdPercent, peer.LoadLinePercent = nil, nil
		if got, want := p.Over(strategy.Default()), peer.Over(strategy.Default()); got != want {
			t.Fatalf("%q: %+v, the peers read %+v", text, got, want)
		}
	})
}

func FuzzCluster(f *testing.F) {
	for _, seed := range []string{nodes, `{"clusterStrategy": {"policy": "auto"}}`,
		`{"nodeStrategies": [{"nodeSelector": {}}]}`,
		`{"nodeStrategies": [{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}]}`, `{"clusterStrategy": 1}`, `{}x`} {
		f.Add(seed)
	}
	last, _ := ParseCluster("", nodes, Cluster{})
	f.Fuzz(func(t *testing.T, text string) {
		c, bad := ParseCluster("o", text, last)
		complain(t, text, bad)
		for _, n := range append(c.nodes, nodeStrategy{patch: c.all}) {
			if err := n.patch.Check(); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			n.selector.Matches(map[string]string{"pool": "web"})
		}
	})
}

func FuzzNamespacesAndTenants(f *testing.F) {
	for _, seed := range []string{`{"enabledNamespaces": ["a"], "disabledNamespaces": ["b"]}`,
		`{"enabledNamespaces": [1]}`, `{"extraCoresPerPod": 1e400}`,
		`{"extraCoresPerNamespace": 0.5, "exclusiveNamespaces": null}`, `{"annotationMaxima": [{"namespaces": ["*"], "cpuBurstPercent": 5}, null]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, bad := ParseNamespaces("o", text, Namespaces{})
		complain(t, text, bad)
		n.For("a")
		tenants, bad := ParseTenants("o", text, Tenants{})
		complain(t, text, bad)
		most := int64(10000)
		asked := Asked{Key: Annotation, Patch: strategy.Patch{CPUBurstPercent: &most, CFSQuotaBurstPercent: &most}}
		own := strategy.Default()
		s := Kubernetes{Tenants: tenants}.Pod("o", own, asked).Strategy
		if s.CFSQuotaBurstPercent < 100 || s.CPUBurstPercent < 0 || s.CFSQuotaBurstPeriodSeconds < -1 {
			t.Fatalf("%q: %+v", text, s)
		}
		if tenants.maxima == nil && (s.CFSQuotaBurstPercent > own.CFSQuotaBurstPercent ||
			s.CPUBurstPercent > own.CPUBurstPercent) {
			t.Fatalf("%q: nobody allows more, and it has %+v", text, s)
		}
	})
}

func complain(t *testing.T, text string, bad []*Rejected) {
	t.Helper()
	bounded(t, text, bad)
	for _, r := range bad {
		if r.Object != "o" || r.Key == "" || r.Msg == "" {
			t.Fatalf("%q: %+v", text, r)
		}
	}
}
