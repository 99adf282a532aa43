package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/strategy"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The example that is installed with the systemd unit is good.
func TestShippedFile(t *testing.T) {
	f := mustParse(t, readFile(t, "../../deploy/systemd/config.yaml"))
	want := strategy.Default()
	want.Policy = strategy.Auto
	if got := f.Strategy(); got != want {
		t.Errorf("strategy %+v, want auto and the defaults", got)
	}
}

// docs/CONFIG.md: the examples are good, the table names every field with its default, and the errors that it shows
// are those that Parse gives.
func TestDocument(t *testing.T) {
	doc := readFile(t, "../../docs/CONFIG.md")
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(doc, -1)
	if len(examples) != 2 {
		t.Fatalf("%d examples, want 2", len(examples))
	}
	first := mustParse(t, examples[0][1])
	if got := first.Resolve("/lab/batch"); got.Strategy.Policy != strategy.None || got.Request != 0.5 || got.Class != "BE" {
		t.Errorf("first example, /lab/batch: %+v", got)
	}
	second := mustParse(t, examples[1][1])
	for group, want := range map[string]strategy.Strategy{
		"/lab/web":   {Policy: strategy.Auto, CFSQuotaBurstPercent: 200},
		"/lab/batch": {Policy: strategy.None, CFSQuotaBurstPercent: 200},
		"/other":     {Policy: strategy.Auto, CFSQuotaBurstPercent: 300},
	} {
		got := second.Resolve(group).Strategy
		if got.Policy != want.Policy || got.CFSQuotaBurstPercent != want.CFSQuotaBurstPercent {
			t.Errorf("second example, %s: %+v", group, got)
		}
	}
	for _, row := range []string{"| `policy` |", "| `none` | `none`, `cpuBurstOnly`, `cfsQuotaBurstOnly`, `auto` |",
		"| `cpuBurstPercent` |", "| 1000 | 0..10000 |", "| `cfsQuotaBurstPercent` |", "| 300 | 100..10000 |",
		"| `cfsQuotaBurstPeriodSeconds` |", "| -1 | -1..31536000 |", "| `sharePoolThresholdPercent` |", "| 50 | 0..100 |"} {
		if !strings.Contains(doc, row) {
			t.Errorf("docs/CONFIG.md does not have %q", row)
		}
	}
}

func TestDocumentedErrors(t *testing.T) {
	doc := readFile(t, "../../docs/CONFIG.md")
	for _, text := range []string{
		"strategy:\n  policy: auto\n  cpuBurstPercnt: 1\n",
		"strategy:\n  policy: auto\n  cpuBurstPercent: 1\n  cfsQuotaBurstPercent: 99\n",
		"\n\n\n\n\noverrides:\n  - cgroup: lab/*\n",
	} {
		_, err := Parse("config.yaml", []byte(text))
		if err == nil || !strings.Contains(doc, "\n"+err.Error()+"\n") {
			t.Errorf("docs/CONFIG.md does not show %v", err)
		}
	}
}
