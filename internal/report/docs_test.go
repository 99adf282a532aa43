package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"plimsoll/internal/golden"
)

const referenceFile = "../../docs/REFERENCE.md"

// TestMetricsAreDocumented: docs/REFERENCE.md has each metric with its type, its labels and its HELP text.
func TestMetricsAreDocumented(t *testing.T) {
	golden.Part(t, referenceFile, "metrics", metricTables(t))
}

// metricTables are all metrics as Markdown, a table for each part of the collector.
func metricTables(t *testing.T) string {
	all, few := families(t, Full), families(t, Basic)
	c := NewCollector(nil, Full)
	var b strings.Builder
	for _, part := range []struct {
		title string
		list  []*prometheus.Desc
	}{
		{"Of each container and pod", append(c.containers.list(), c.throttles)},
		{"With `run --requests`", c.requests.list()},
		{"With `run --waits`", c.waits.list()},
		{"Of the node and the agent", append(c.agent.list(), c.nodeState, c.writes, c.decisions, c.missing, c.mode,
			c.build)},
		{"With `colocation`", c.colocation.list()},
		{"With `colocation` and mechanism `schedExt`", c.scheduler.list()},
		{"With `reserve`, where a container asks for exclusive CPUs", c.reserve.list()},
		{"With `receipts`", c.receipts.list()},
		{"With the record (`run --record-dir`)", c.flight.list()},
		{"With `run --kube`", c.kubernetes.list()},
		{"With `run --kube` or `--nri-socket`", c.nri.list()},
	} {
		fmt.Fprintf(&b, "\n%s:\n\n| Name | Type | Meaning |\n|---|---|---|\n", part.title)
		for _, d := range part.list {
			name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
			f := all[name]
			if f == nil {
				t.Fatalf("the sample has no %s", name)
			}
			delete(all, name)
			text := f.GetHelp()
			if few[name] == nil {
				text += " (full)"
			}
			fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", name, ownLabels(f), strings.ToLower(f.GetType().String()), text)
		}
	}
	for name := range all {
		t.Errorf("%s is in no table", name)
	}
	return b.String()
}

func families(t *testing.T, detail Detail) map[string]*dto.MetricFamily {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(NewCollector(func() (Status, error) { return sample(), nil }, detail)); err != nil {
		t.Fatal(err)
	}
	list, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all
}

// ownLabels are the labels of a metric besides those that say which container it is, such as {knob,outcome}.
func ownLabels(f *dto.MetricFamily) string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		if !slices.Contains(containerLabels(), l.GetName()) {
			names = append(names, l.GetName())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "{" + strings.Join(names, ",") + "}"
}

// TestHelpStandsAlone: a HELP text is read by itself, in a list that is sorted by name. It may not lean on a neighbour.
func TestHelpStandsAlone(t *testing.T) {
	families, err := registry(t, func() (Status, error) { return sample(), nil }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	leans := regexp.MustCompile(
		`(?i)\b(of these|of it|of the same|those|it is to be|that it was|load it|of late|what (it|they))\b`)
	for _, f := range families {
		if help := f.GetHelp(); leans.MatchString(help) || len(strings.Fields(help)) < 3 ||
			!strings.HasSuffix(help, ".") {
			t.Errorf("%s: %q", f.GetName(), help)
		}
	}
}
