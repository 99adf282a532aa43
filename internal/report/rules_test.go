package report

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// query is one expression of the rules or of a dashboard, and the texts in which its labels are named.
type query struct {
	where, expr string
	texts       []string
}

func read(t *testing.T, file string, parse func([]byte, any) error, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = parse(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// rules are the alerts, and what is recorded.
func rules(t *testing.T) (alerts, records []query) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Record, Expr string
				Annotations         map[string]string
			}
		}
	}
	read(t, "../../deploy/helm/plimsoll/rules.yaml", yaml.Unmarshal, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				records = append(records, query{r.Record, r.Expr, nil})
			} else {
				alerts = append(alerts, query{r.Alert, r.Expr, slices.Collect(maps.Values(r.Annotations))})
			}
		}
	}
	return alerts, records
}

// panels are the queries of the dashboards.
func panels(t *testing.T) (list []query) {
	t.Helper()
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if metric, label, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("),
				")"), ", "); ok {
				list = append(list, query{d.UID + ": variable " + v.Name, metric, []string{"{{" + label + "}}"}})
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				list = append(list, query{d.UID + ": " + p.Title, target.Expr, []string{target.LegendFormat}})
			}
		}
	}
	return list
}

// documented are the queries of docs/REFERENCE.md.
func documented(t *testing.T) (list []query) {
	t.Helper()
	text, err := os.ReadFile("../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?m)^    (rate\\(.*)$|`(sum by [^`]*)`").FindAllStringSubmatch(
		string(text), -1) {
		list = append(list, query{"docs/REFERENCE.md", found[1] + found[2], nil})
	}
	return list
}

// exported are the values of each label of each metric, as the agent exports them.
func exported(t *testing.T) map[string]map[string][]string {
	t.Helper()
	families, err := registry(t, func() (Status, error) { return sample(), nil }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]map[string][]string{}
	for _, f := range families {
		labels := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		metrics[f.GetName()] = labels
		if f.GetMetric()[0].GetHistogram() != nil {
			bucket := maps.Clone(labels)
			bucket["le"] = nil
			metrics[f.GetName()+"_bucket"] = bucket
		}
	}
	metrics["up"] = map[string][]string{} // Prometheus's own
	metrics["ALERTS"] = map[string][]string{"alertname": nil, "alertstate": {"pending", "firing"}, "namespace": nil,
		"pod": nil, "container": nil}
	// Those of kube-state-metrics:
	metrics["kube_pod_owner"] = map[string][]string{"namespace": nil, "pod": nil, "owner_kind": {"ReplicaSet"},
		"owner_name": nil, "owner_is_controller": nil}
	metrics["kube_replicaset_owner"] = map[string][]string{"namespace": nil, "replicaset": nil, "owner_kind": nil,
		"owner_name": nil}
	return metrics
}

var (
	aSelector = regexp.MustCompile(
		`\b((?:[a-z_]+:)?plimsoll_[a-z0-9_]+(?::[a-z0-9_]+)?|kube_[a-z_]+|ALERTS|up\b)(?:\{([^}]*)\})?`)
	aMatcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	aGrouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	aLabel    = regexp.MustCompile(`\$labels\.([a-z_]+)|\{\{([a-z_]+)\}\}`)
	aNewLabel = regexp.MustCompile(`"([a-z_]+)", "\$1", "([a-z_]+)"`) // of label_replace
)

// labels are those that the result of a grouping has.
func (q query) labels() map[string][]string {
	labels := map[string][]string{}
	if g := aGrouping.FindStringSubmatch(q.expr); g != nil {
		for _, name := range strings.Split(g[1], ",") {
			labels[strings.TrimSpace(name)] = nil
		}
	}
	return labels
}

// check says what of a query the agent does not export. Labels of the scrape target are Prometheus's.
func (q query) check(metrics map[string]map[string][]string) (problems []string) {
	known := map[string][]string{"node": nil, "instance": nil, "job": {"plimsoll"}}
	selectors := aSelector.FindAllStringSubmatch(q.expr, -1)
	if len(selectors) == 0 {
		return []string{"asks for no metric"}
	}
	target := maps.Clone(known)
	for _, s := range selectors {
		labels, ok := metrics[s[1]]
		if !ok {
			problems = append(problems, "no metric "+s[1])
		}
		maps.Copy(known, labels)
		for _, m := range aMatcher.FindAllStringSubmatch(s[2], -1) {
			values, own := labels[m[1]]
			if !own {
				values, own = target[m[1]]
			}
			if !own || m[2] == "=" && !strings.HasPrefix(m[3], "$") && !slices.Contains(values, m[3]) {
				problems = append(problems, s[1]+" has no "+m[0])
			}
		}
	}
	var named []string
	for _, l := range aNewLabel.FindAllStringSubmatch(q.expr, -1) {
		known[l[1]] = nil
		named = append(named, l[2])
	}
	for _, g := range aGrouping.FindAllStringSubmatch(q.expr, -1) {
		named = append(named, strings.Split(g[1], ",")...)
	}
	for _, text := range q.texts {
		for _, l := range aLabel.FindAllStringSubmatch(text, -1) {
			named = append(named, l[1]+l[2])
		}
	}
	for _, label := range named {
		if _, ok := known[strings.TrimSpace(label)]; !ok {
			problems = append(problems, "no label "+label)
		}
	}
	return problems
}

// TestRulesAndDashboardAskForWhatIsExported: every metric, label and label value in them is the agent's.
func TestRulesAndDashboardAskForWhatIsExported(t *testing.T) {
	metrics, board, docs := exported(t), panels(t), documented(t)
	alerts, records := rules(t)
	if len(alerts) < 12 || len(records) < 6 || len(board) < 10 || len(docs) < 4 {
		t.Fatalf("%d alerts, %d records, %d queries of the dashboard, %d of the documentation", len(alerts),
			len(records), len(board), len(docs))
	}
	for _, q := range records {
		metrics[q.where] = q.labels()
	}
	for _, q := range slices.Concat(alerts, records, board, docs) {
		for _, problem := range q.check(metrics) {
			t.Errorf("%s: %s: %s", q.where, problem, q.expr)
		}
	}
	for _, wrong := range []query{
		{expr: `vector(1)`},
		{expr: `plimsoll_nosuch > 0`},
		{expr: `plimsoll_mode{mode="asleep"} == 1`},
		{expr: `rate(plimsoll_mode{name=~".*"}[5m])`},
		{expr: `sum by (node, name) (plimsoll_mode)`},
		{expr: `up{job="other"} == 0`},
		{expr: `plimsoll_mode_bucket`},
		{expr: `namespace_workload:plimsoll_nosuch:rate5m`},
		{expr: `sum by (workload) (kube_pod_owner)`},
		{expr: `label_replace(kube_pod_owner, "workload", "$1", "owner", "(.+)")`},
		{expr: `plimsoll_mode`, texts: []string{"the agent of {{ $labels.pod }}"}},
	} {
		if len(wrong.check(metrics)) == 0 {
			t.Errorf("nothing is found wrong with %v", wrong)
		}
	}
}

// TestRulesAreDocumented: each rule stands in a table of docs/RUNBOOK.md or docs/REFERENCE.md,
// and each that stands there is one.
func TestRulesAreDocumented(t *testing.T) {
	var text string
	for _, name := range []string{"RUNBOOK.md", "REFERENCE.md"} {
		data, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	var documented, made []string
	for _, name := range regexp.MustCompile("`(Plimsoll[A-Z][A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
		documented = append(documented, name[1])
	}
	alerts, records := rules(t)
	for _, q := range alerts {
		made = append(made, q.where)
	}
	slices.Sort(made)
	slices.Sort(documented)
	if !slices.Equal(made, slices.Compact(documented)) {
		t.Errorf("the rules are\n%s\ndocumented are\n%s", made, documented)
	}
	var recorded, listed []string
	for _, name := range regexp.MustCompile("(?m)^\\| `(namespace_workload:[a-z0-9_:]+)` \\|").FindAllStringSubmatch(
		text, -1) {
		listed = append(listed, name[1])
	}
	for _, q := range records {
		if strings.HasPrefix(q.where, "namespace_workload:") {
			recorded = append(recorded, q.where)
		}
	}
	slices.Sort(recorded)
	slices.Sort(listed)
	if !slices.Equal(recorded, listed) {
		t.Errorf("recorded are\n%s\ndocumented are\n%s", recorded, listed)
	}
}
