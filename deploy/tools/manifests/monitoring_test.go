package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

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
	}
}

// TestPodMonitor: the labels namespace, pod and container are left as the agent exports them, and the node is added.
func TestPodMonitor(t *testing.T) {
	var m struct {
		object `json:",inline"`
		Spec   struct {
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct {
				Port, Interval string
				HonorLabels    bool
				Relabelings    []struct {
					SourceLabels             []string
					TargetLabel, Replacement string
				}
			}
		}
	}
	rendered(t, "PodMonitor", map[string]any{"podMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "p"}}}, &m)
	if len(m.Spec.PodMetricsEndpoints) != 1 || m.Metadata.Labels["release"] != "p" {
		t.Fatalf("%+v", m)
	}
	e := m.Spec.PodMetricsEndpoints[0]
	if !e.HonorLabels || len(e.Relabelings) != 2 || e.Relabelings[0].TargetLabel != "node" ||
		e.Relabelings[0].SourceLabels[0] != "__meta_kubernetes_pod_node_name" || e.Relabelings[1].Replacement != "plimsoll" {
		t.Errorf("%+v", e)
	}
}

// TestPrometheusRule: the rules of the file are in it, and each waits before it fires.
func TestPrometheusRule(t *testing.T) {
	type groups struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	var r struct {
		object `json:",inline"`
		Spec   groups
	}
	rendered(t, "PrometheusRule", map[string]any{"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "p"}}}, &r)
	text, err := os.ReadFile(chart + "/rules.yaml")
	var file groups
	if err == nil {
		err = yaml.UnmarshalStrict(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Spec, file) || len(file.Groups) != 1 || r.Metadata.Labels["release"] != "p" {
		t.Fatalf("rendered: %+v\nthe file: %+v", r, file)
	}
	for _, rule := range file.Groups[0].Rules {
		if wait, err := time.ParseDuration(rule.For); err != nil || wait < time.Minute || rule.Alert == "" || rule.Expr == "" ||
			rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%v: %+v", err, rule)
		}
	}
}
