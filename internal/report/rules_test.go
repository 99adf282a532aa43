package report

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// query is one expression of the alert rules or of the dashboard, and the texts in which its labels are named.
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

func alerts(t *testing.T) (list []query) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	read(t, "../../deploy/helm/plimsoll/rules.yaml", yaml.Unmarshal, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			list = append(list, query{r.Alert, r.Expr, slices.Collect(maps.Values(r.Annotations))})
		}
	}
	return list
}

func panels(t *testing.T) (list []query) {
	t.Helper()
	var board struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	read(t, "../../deploy/grafana/plimsoll.json", json.Unmarshal, &board)
	for _, v := range board.Templating.List {
		if metric, label, ok := strings.Cut(strings.Trim(strings.TrimPrefix(v.Definition, "label_values"), "()"), ", "); ok {
			list = append(list, query{"variable " + v.Name, metric, []string{"{{" + label + "}}"}})
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, query{p.Title, target.Expr, []string{target.LegendFormat}})
		}
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
	return metrics
}

var (
	aSelector = regexp.MustCompile(`\b(plimsoll_[a-z0-9_]+|up\b)(?:\{([^}]*)\})?`)
	aMatcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	aGrouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	aLabel    = regexp.MustCompile(`\$labels\.([a-z_]+)|\{\{([a-z_]+)\}\}`)
)

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
			if !own || m[2] == "=" && !slices.Contains(values, m[3]) {
				problems = append(problems, s[1]+" has no "+m[0])
			}
		}
	}
	var named []string
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
	metrics := exported(t)
	rules, board := alerts(t), panels(t)
	if len(rules) < 12 || len(board) < 10 {
		t.Fatalf("%d rules, %d queries of the dashboard", len(rules), len(board))
	}
	for _, q := range slices.Concat(rules, board) {
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
		{expr: `plimsoll_mode`, texts: []string{"the agent of {{ $labels.pod }}"}},
	} {
		if len(wrong.check(metrics)) == 0 {
			t.Errorf("nothing is found wrong with %v", wrong)
		}
	}
}

// TestAlarmsAreDocumented: each rule stands in the table of docs/OPERATIONS.md, and each that stands there is one.
func TestAlarmsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, made []string
	for _, name := range regexp.MustCompile("`(Plimsoll[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, name[1])
	}
	for _, q := range alerts(t) {
		made = append(made, q.where)
	}
	slices.Sort(made)
	slices.Sort(documented)
	if !slices.Equal(made, slices.Compact(documented)) {
		t.Errorf("the rules are\n%s\ndocumented are\n%s", made, documented)
	}
}
