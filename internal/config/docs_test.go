package config

import (
	"os"
	"regexp"
	"slices"
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

// The file that is installed with the systemd unit changes nothing, and what is commented out in it is good.
func TestShippedFile(t *testing.T) {
	text := readFile(t, "../../deploy/systemd/config.yaml")
	if f := mustParse(t, text); f.Node() != strategy.DefaultNode() || len(f.overrides) > 0 {
		t.Errorf("%+v, want the defaults, and no overrides", f)
	}
	_, sample, _ := strings.Cut(text, "\n# overrides:\n")
	f := mustParse(t, strings.ReplaceAll("\n# overrides:\n"+sample, "\n# ", "\n"))
	if got := f.Resolve("/system.slice/nginx.service"); got.Strategy.Policy != strategy.Auto || got.Request != 0.5 {
		t.Errorf("the sample gives %+v", got)
	}
}

// docs/CONFIG.md: the examples are good, the table names every field with its default, and the errors that it shows
// are those that Parse gives.
func TestDocument(t *testing.T) {
	doc := readFile(t, "../../docs/CONFIG.md")
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(doc, -1)
	if len(examples) != 3 {
		t.Fatalf("%d examples, want 3", len(examples))
	}
	first := mustParse(t, examples[0][1])
	if got := first.Resolve("/lab/batch"); got.Strategy.Policy != strategy.None || got.Request != 0.5 || got.Class != "BE" {
		t.Errorf("first example, /lab/batch: %+v", got)
	}
	receipts := mustParse(t, examples[1][1])
	for group, want := range map[string]float64{"/lab/web": 0.01, "/lab/payments": 0} {
		if got := receipts.Resolve(group).Strategy.Receipts; got != want {
			t.Errorf("example of receipts, %s: %v, want %v", group, got, want)
		}
	}
	second := mustParse(t, examples[2][1])
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
		"| `cfsQuotaBurstPeriodSeconds` |", "| -1 | -1..31536000 |", "| `startupSeconds` |", "| 60 | 0..600 |", "| `startupBurstPercent` |", "| as `cfsQuotaBurstPercent` | 100..10000 |", "| `sharePoolThresholdPercent` |", "| 50 | 0..100 |"} {
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

// The examples of the Kubernetes part are good, each in its place, and its errors are those that are given.
func TestDocumentedKubernetes(t *testing.T) {
	doc := readFile(t, "../../docs/CONFIG.md")
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(doc, -1)
	if len(examples) != 4 {
		t.Fatalf("%d examples, want 4", len(examples))
	}
	patch, _, bad := ParseAnnotations("", map[string]string{Annotation: examples[0][1]}, strategy.Patch{})
	if got := patch.Over(strategy.Default()); len(bad) > 0 || got != auto() {
		t.Errorf("annotation: %+v, %v", got, messages(bad))
	}
	cluster, bad := ParseCluster("", examples[1][1], Cluster{})
	if got := (Kubernetes{Cluster: cluster}).Node(strategy.DefaultNode(), map[string]string{"pool": "web"}); len(bad) > 0 || got.CFSQuotaBurstPercent != 400 {
		t.Errorf("cpu-burst-config: %+v, %v", got, messages(bad))
	}
	namespaces, bad := ParseNamespaces("", examples[2][1], Namespaces{})
	if p := namespaces.For("black-ns").Policy; len(bad) > 0 || p == nil || *p != strategy.None {
		t.Errorf("cpu-burst: %v", messages(bad))
	}
	shared, bad := ParseTenants("", examples[3][1], Tenants{})
	if len(bad) > 0 || shared.Extra.PerNamespace.CPUs != 8 || len(*shared.exclusive) != 1 || len(shared.maxima) != 2 {
		t.Errorf("plimsoll-tenants: %+v, %v", shared, messages(bad))
	}
	_, _, bad = ParseAnnotations("Pod default/web", map[string]string{Annotation: `{"policy": "on"}`}, strategy.Patch{})
	_, more := ParseCluster("ConfigMap kube-system/ack-slo-config", `{"clusterStrategy": {"cfsQuotaBurstPercent": 99}, "nodeStrategies": [{}]}`, Cluster{})
	_, words := ParseClass("Pod default/web", map[string]string{ClassLabel: "lsr"}, "")
	for _, r := range slices.Concat(bad, more, words) {
		if !strings.Contains(doc, "\n"+r.Error()+"\n") {
			t.Errorf("docs/CONFIG.md does not show %v", r)
		}
	}
	for _, key := range []string{Annotation, OldAnnotation, ExclusiveAnnotation, ClassLabel, OldClassLabel, BurstKey, NamespaceKey, TenantsKey} {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("docs/CONFIG.md does not name %s", key)
		}
	}
}
