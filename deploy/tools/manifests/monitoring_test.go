package main

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// rendered reads the chart's only object of a kind.
func rendered(t *testing.T, kind string, values map[string]any, object any) {
	t.Helper()
	files, err := render(chart, values, kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, document := range strings.Split(string(files["plimsoll.yaml"]), "\n---\n") {
		if !strings.Contains(document, "\nkind: "+kind+"\n") {
			continue
		}
		n++
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Errorf("%s: %v:\n%s", kind, err, document)
		}
	}
	if n != 1 {
		t.Fatalf("%d objects of kind %s", n, kind)
	}
}

// object is what all have in common.
type object struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Labels          map[string]string
		Annotations     map[string]string
	}
}

// TestPodMonitor: the labels namespace, pod and container are left as the agent exports them, and the node is added.
// With values for TLS Prometheus verifies who answers.
func TestPodMonitor(t *testing.T) {
	type monitor struct {
		object `json:",inline"`
		Spec   struct {
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct {
				Port, Interval, Scheme string
				TLSConfig              map[string]any
				Authorization          struct{ Credentials struct{ Name, Key string } }
				HonorLabels            bool
				Relabelings            []struct {
					SourceLabels             []string
					TargetLabel, Replacement string
				}
			}
		}
	}
	var m, verified monitor
	rendered(t, "PodMonitor",
		map[string]any{"podMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "p"}}}, &m)
	if len(m.Spec.PodMetricsEndpoints) != 1 || m.Metadata.Labels["release"] != "p" {
		t.Fatalf("%+v", m)
	}
	e := m.Spec.PodMetricsEndpoints[0]
	if diff := cmp.Diff(map[string]any{"insecureSkipVerify": true}, e.TLSConfig); diff != "" {
		t.Error(diff)
	}
	tls := map[string]any{"serverName": "plimsoll", "ca": map[string]any{"secret": map[string]any{"name": "ca"}}}
	rendered(t, "PodMonitor", map[string]any{"podMonitor": map[string]any{"enabled": true, "tlsConfig": tls}},
		&verified)
	if diff := cmp.Diff(tls, verified.Spec.PodMetricsEndpoints[0].TLSConfig); diff != "" {
		t.Error(diff)
	}
	var token struct {
		object `json:",inline"`
		Type   string
	}
	rendered(t, "Secret", map[string]any{"podMonitor": map[string]any{"enabled": true}}, &token)
	if c := e.Authorization.Credentials; e.Scheme != "https" || c.Name != token.Metadata.Name || c.Key != "token" ||
		token.Type != "kubernetes.io/service-account-token" {
		t.Errorf("nobody could scrape: %+v, %+v", e, token)
	}
	if !e.HonorLabels || len(e.Relabelings) != 2 || e.Relabelings[0].TargetLabel != "node" ||
		e.Relabelings[0].SourceLabels[0] != "__meta_kubernetes_pod_node_name" ||
		e.Relabelings[1].Replacement != "plimsoll" {
		t.Errorf("%+v", e)
	}
}

// TestNetworkPolicy: only the port of the pages is open, to those named,
// and with a PodMonitor to the pods of all namespaces.
func TestNetworkPolicy(t *testing.T) {
	for _, c := range []struct {
		values map[string]any
		from   int
	}{{nil, 0}, {map[string]any{"podMonitor": map[string]any{"enabled": true}}, 1},
		{map[string]any{"networkPolicy": map[string]any{"from": []any{map[string]any{"podSelector": map[string]any{}},
			map[string]any{"podSelector": map[string]any{}}}}}, 2}} {
		var p struct {
			object `json:",inline"`
			Spec   struct {
				PodSelector struct{ MatchLabels map[string]string }
				PolicyTypes []string
				Ingress     []struct {
					From  []map[string]any
					Ports []struct {
						Port     int
						Protocol string
					}
				}
			}
		}
		rendered(t, "NetworkPolicy", c.values, &p)
		if len(p.Spec.PolicyTypes) != 1 || p.Spec.PolicyTypes[0] != "Ingress" ||
			p.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "plimsoll" {
			t.Errorf("%v: %+v", c.values, p)
		}
		if c.from == 0 && len(p.Spec.Ingress) != 0 ||
			c.from > 0 && (len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].From) != c.from ||
				len(p.Spec.Ingress[0].Ports) != 1 || p.Spec.Ingress[0].Ports[0].Port != 12779) {
			t.Errorf("%v: %+v", c.values, p.Spec.Ingress)
		}
	}
}

// TestResourceQuota: it permits the pods of the class that the agents have, and is only there if it is asked for.
func TestResourceQuota(t *testing.T) {
	var q struct {
		object `json:",inline"`
		Spec   struct {
			Hard          map[string]string
			ScopeSelector struct {
				MatchExpressions []struct {
					ScopeName, Operator string
					Values              []string
				}
			}
		}
	}
	values := map[string]any{"resourceQuota": map[string]any{"enabled": true},
		"priorityClassName": "system-cluster-critical"}
	rendered(t, "ResourceQuota", values, &q)
	if s := q.Spec.ScopeSelector.MatchExpressions; len(s) != 1 || s[0].ScopeName != "PriorityClass" ||
		s[0].Operator != "In" || !slices.Equal(s[0].Values, []string{"system-cluster-critical"}) ||
		q.Spec.Hard["pods"] != "1G" || len(q.Spec.Hard) != 1 {
		t.Errorf("%+v", q)
	}
	delete(values, "resourceQuota")
	files, err := render(chart, values, kubeVersion)
	if err != nil || strings.Contains(string(files["plimsoll.yaml"]), "kind: ResourceQuota") {
		t.Errorf("it is there without being asked for: %v", err)
	}
}

// TestPrometheusRule: the rules of the file are in it, and each alert waits before it fires.
func TestPrometheusRule(t *testing.T) {
	type groups struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Record, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	var r struct {
		object `json:",inline"`
		Spec   groups
	}
	rendered(t, "PrometheusRule",
		map[string]any{"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "p"}}}, &r)
	text, err := os.ReadFile(chart + "/rules.yaml")
	var file groups
	if err == nil {
		err = yaml.UnmarshalStrict(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Spec, file) || len(file.Groups) != 2 || r.Metadata.Labels["release"] != "p" {
		t.Fatalf("rendered: %+v\nthe file: %+v", r, file)
	}
	for _, rule := range file.Groups[1].Rules {
		if rule.Record == "" || rule.Expr == "" || rule.Alert+rule.For != "" {
			t.Errorf("%+v", rule)
		}
	}
	for _, rule := range file.Groups[0].Rules {
		if wait, err := time.ParseDuration(rule.For); err != nil || wait < time.Minute || rule.Alert == "" ||
			rule.Expr == "" ||
			rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" ||
			rule.Annotations["description"] == "" {
			t.Errorf("%v: %+v", err, rule)
		}
	}
}
