package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// These tests run Prometheus's promtool and Alertmanager. They fail where one is missing: test/setup.sh installs both.

// tool runs a program of Debian's packages prometheus or prometheus-alertmanager, and fails the test if it fails.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v; hint: bash test/setup.sh\n%s", strings.Join(append([]string{name}, args...), " "), err, out)
	}
	return string(out)
}

type (
	labels map[string]string

	series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	firing struct {
		Labels labels `json:"exp_labels"`
	}
	alertTest struct {
		At     string   `json:"eval_time"`
		Alert  string   `json:"alertname"`
		Alerts []firing `json:"exp_alerts"`
	}
	valueTest struct {
		Expr   string  `json:"expr"`
		At     string  `json:"eval_time"`
		Values []value `json:"exp_samples"`
	}
	value struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	ruleTest struct {
		Name     string      `json:"name"`
		Interval string      `json:"interval"`
		Series   []series    `json:"input_series"`
		Alerts   []alertTest `json:"alert_rule_test,omitempty"`
		Values   []valueTest `json:"promql_expr_test,omitempty"`
	}
)

// named writes a metric with its labels.
func (l labels) named(metric string) string {
	var list []string
	for name, value := range l {
		list = append(list, name+`="`+value+`"`)
	}
	return metric + "{" + strings.Join(list, ",") + "}"
}

func (l labels) and(more labels) labels {
	all := maps.Clone(l)
	maps.Copy(all, more)
	return all
}

// promtool evaluates the chart's rules, and those of somebody else besides, over series that the tests make up.
// Annotations are not compared.
func promtool(t *testing.T, others string, tests ...ruleTest) {
	t.Helper()
	rules, err := filepath.Abs(chart + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := []string{stripped(t, rules, filepath.Join(dir, "rules.yaml"))}
	if others != "" {
		files = append(files, filepath.Join(dir, "others.yaml"))
		if err := os.WriteFile(files[1], []byte(others), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range tests {
		text, err := yaml.Marshal(map[string]any{"rule_files": files, "evaluation_interval": "1m",
			"tests": []ruleTest{one}})
		file := filepath.Join(dir, "tests.yaml")
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: promtool: %v; hint: bash test/setup.sh\n%s", one.Name, err, out)
		}
	}
}

// stripped is the file without its annotations, which promtool would compare word by word.
func stripped(t *testing.T, from, to string) string {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string           `json:"name"`
			Rules []map[string]any `json:"rules"`
		} `json:"groups"`
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			delete(r, "annotations")
		}
	}
	if err == nil {
		text, err = yaml.Marshal(file)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestRulesAreValid: Prometheus takes the file as it is.
func TestRulesAreValid(t *testing.T) {
	out := tool(t, "promtool", "check", "rules", chart+"/rules.yaml")
	if !strings.Contains(out, "SUCCESS") {
		t.Error(out)
	}
}

// agentLabels are the labels of a container's series, as the PodMonitor leaves them.
func agentLabels(namespace, pod, name string) labels {
	return labels{"namespace": namespace, "pod": pod, "container": name, "cgroup": "/kubepods/" + pod + "/" + name,
		"level": "container", "runtime": "containerd", "node": "n1", "instance": "10.0.0.1:12779", "job": "plimsoll"}
}

// TestWorkloads: the containers of a Deployment's pods are summed up, whatever ReplicaSet they are of; pods of a
// StatefulSet and pods that nobody owns are found too, and a pod of which nobody knows the owner is nowhere.
func TestWorkloads(t *testing.T) {
	owner := func(pod, kind, name, controller string) series {
		return series{labels{"namespace": "shop", "pod": pod, "owner_kind": kind, "owner_name": name,
			"owner_is_controller": controller,
			"instance":            "ksm", "job": "kube-state-metrics"}.named("kube_pod_owner"), "1x20"}
	}
	set := func(name, kind, of string) series {
		return series{labels{"namespace": "shop", "replicaset": name, "owner_kind": kind, "owner_name": of,
			"instance": "ksm"}.named("kube_replicaset_owner"), "1x20"}
	}
	test := ruleTest{Name: "workloads", Interval: "1m", Series: []series{
		owner("web-1-a", "ReplicaSet", "web-1", "true"), owner("web-2-b", "ReplicaSet", "web-2", "true"),
		owner("web-2-b", "Machine", "m", "false"),
		set("web-1", "Deployment", "web"), set("web-2", "Deployment", "web"),
		owner("bare-c", "ReplicaSet", "bare", "true"), set("bare", "", ""),
		owner("db-0", "StatefulSet", "db", "true"), owner("db-0", "Machine", "m", "false"), owner("alone", "", "", ""),
		owner("older", "<none>", "<none>", "<none>"),
	}}
	for _, c := range []struct {
		pod, name, values string
	}{{"web-1-a", "app", "0+60x20"}, {"web-1-a", "proxy", "0+30x20"}, {"web-2-b", "app", "0+30x20"},
		{"bare-c", "app", "0+6x20"}, {"db-0", "app", "0+12x20"},
		{"alone", "app", "0+15x20"}, {"older", "app", "0+24x20"}, {"stranger", "app", "0+600x20"}} {
		l := agentLabels("shop", c.pod, c.name)
		for _, metric := range []string{"usage_seconds_total", "throttled_wall_seconds_total",
			"wall_saved_seconds_total", "above_limit_seconds_total", "throttled_periods_total"} {
			test.Series = append(test.Series, series{l.named("plimsoll_container_" + metric), c.values})
		}
		test.Series = append(test.Series, series{l.named("plimsoll_container_periods_total"), "0+600x20"})
		pod := l.and(labels{"level": "pod", "container": ""})
		// not to be summed
		test.Series = append(test.Series, series{pod.named("plimsoll_container_usage_seconds_total"), "0+6000x20"})
	}
	sums := func(record string, of map[string]float64) {
		want := valueTest{Expr: record, At: "15m"}
		for workload, v := range of {
			kind := map[string]string{"web": "Deployment", "bare": "ReplicaSet", "db": "StatefulSet", "alone": "Pod",
				"older": "Pod"}[workload]
			want.Values = append(want.Values,
				value{labels{"namespace": "shop", "workload": workload, "workload_type": kind}.named(record), v})
		}
		test.Values = append(test.Values, want)
	}
	for _, name := range []string{"usage_seconds", "throttled_wall_seconds", "wall_saved_seconds",
		"above_limit_seconds"} {
		sums("namespace_workload:plimsoll_container_"+name+":rate5m",
			map[string]float64{"web": 2, "bare": 0.1, "db": 0.2, "alone": 0.25, "older": 0.4})
	}
	sums("namespace_workload:plimsoll_container_throttled_periods:ratio_rate5m",
		map[string]float64{"web": 120.0 / 1800, "bare": 0.01, "db": 0.02, "alone": 0.025, "older": 0.04})
	promtool(t, "", test)
}

// TestRejectedConfigurationFires as long as it is rejected, also where that was so when the agent began: the first
// sample of its counter has it already.
func TestRejectedConfigurationFires(t *testing.T) {
	const alert = "PlimsollConfigurationRejected"
	l := labels{"node": "n1", "instance": "10.0.0.1:12779", "job": "plimsoll"}
	fires := []firing{{l.and(labels{"alertname": alert, "severity": "warning"})}}
	promtool(t, "", ruleTest{Name: "rejected", Interval: "1m", Series: []series{
		{l.named("plimsoll_config_ok"), "1x120"},
		{l.named("plimsoll_kubernetes_rejected"), "2x90 0x30"},
		{l.named("plimsoll_kubernetes_rejected_total"), "2x120"},
	}, Alerts: []alertTest{{"4m", alert, nil}, {"10m", alert, fires}, {"60m", alert, fires}, {"100m", alert, nil}}})
}

// TestContentionForADescheduler: the query of docs/REFERENCE.md gives each node a value in [0, 1] in the label
// instance, a node on which nothing ran included, and a node that is not measured none.
func TestContentionForADescheduler(t *testing.T) {
	text, err := os.ReadFile("../../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("query: >-\n"))
	query, _, found := strings.Cut(string(rest), "```")
	if !found {
		t.Fatal("docs/REFERENCE.md has no query for a descheduler")
	}
	test := ruleTest{Name: "contention", Interval: "1m"}
	for node, v := range map[string][2]string{"half": {"0+30x10", "0+60x10"}, "calm": {"0+0x10", "0+60x10"},
		"empty": {"0x10", "0x10"}} {
		l := labels{"node": node, "instance": "10.0.0.1:12779", "job": "plimsoll"}
		test.Series = append(test.Series, series{l.named("plimsoll_node_contended_seconds_total"), v[0]},
			series{l.named("plimsoll_node_runnable_seconds_total"), v[1]},
			series{l.named("plimsoll_node_used_cpus"), "1x10"})
	}
	test.Series = append(test.Series, series{`plimsoll_node_used_cpus{node="unmeasured"}`, "1x10"})
	want := valueTest{Expr: query, At: "10m"}
	for node, v := range map[string]float64{"half": 0.5, "calm": 0, "empty": 0} {
		want.Values = append(want.Values, value{labels{"node": node, "instance": node}.named(""), v})
	}
	test.Values = []valueTest{want}
	promtool(t, "", test)
}

// TestDashboardQueriesAreValid: Prometheus takes each query of the dashboards, with a value for each variable. Over no
// series each gives nothing.
func TestDashboardQueriesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../grafana/*.json")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$node", ".+", "$namespace", ".+", "$pod", "web-0",
		"$container", "app")
	test := ruleTest{Name: "dashboards", Interval: "1m"}
	for _, file := range files {
		var d struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, &d)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				test.Values = append(test.Values, valueTest{Expr: variables.Replace(q.Expr), At: "1m",
					Values: []value{}})
			}
		}
	}
	if len(test.Values) < 30 {
		t.Errorf("only %d queries", len(test.Values))
	}
	for _, v := range test.Values {
		if strings.Contains(v.Expr, "$") {
			t.Errorf("a variable without a value: %s", v.Expr)
		}
	}
	promtool(t, "", test)
}
