package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	if got := first.Resolve("/lab/batch"); got.Strategy.Policy != strategy.None || got.Request != 0.5 ||
		got.Class != "BE" {
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
}

// TestKeysAreDocumented: docs/CONFIG.md has each key that a file may have.
func TestKeysAreDocumented(t *testing.T) {
	doc := readFile(t, "../../docs/CONFIG.md")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, file := range files {
		for _, key := range regexp.MustCompile(`(?:\{|entry\{)"([a-zA-Z]+)", r\.`).FindAllStringSubmatch(readFile(t,
			file), -1) {
			keys++
			if !regexp.MustCompile("(?m)^## " + key[1] + "$|`" + key[1] + "`").MatchString(doc) {
				t.Errorf("docs/CONFIG.md does not describe %s", key[1])
			}
		}
	}
	if keys < 25 {
		t.Errorf("only %d keys", keys)
	}
}

// TestRangesAreDocumented: the ranges of docs/CONFIG.md are those of the parser: both ends are accepted,
// and nothing beyond.
func TestRangesAreDocumented(t *testing.T) {
	in := map[string]string{"request": "overrides: [{cgroup: /a, %s: %s}]", "minSharedCPUs": "reserve: {%s: %s}",
		"groupIdentity":               "colocation: {beClass: {cpuQOS: {%s: %s}}}",
		"cpuSuppressThresholdPercent": "colocation: {suppress: {%s: %s}}",
		"cpuSuppressMinPercent":       "colocation: {suppress: {%s: %s}}",
		"floorPercent":                "colocation: {schedExt: {%s: %s}}",
		"watchdogSeconds":             "colocation: {schedExt: {%s: %s}}"}
	rows := regexp.MustCompile(
		"(?m)^\\| `(\\w+)` \\|.*\\| (?:0, or )?(-?[0-9.]+)\\.\\.(-?[0-9.]+) \\|$").FindAllStringSubmatch(readFile(t,
		"../../docs/CONFIG.md"), -1)
	for _, row := range rows {
		low, err1 := strconv.ParseFloat(row[2], 64)
		high, err2 := strconv.ParseFloat(row[3], 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for value, good := range map[float64]bool{low: true, high: true, low - 1: false, high + 1: false} {
			text := fmt.Sprintf(cmp.Or(in[row[1]], "strategy: {%s: %s}"), row[1],
				strconv.FormatFloat(value, 'f', -1, 64))
			if _, err := Parse("", []byte(text)); (err == nil) != good {
				t.Errorf("%s: %v, documented is %s..%s", text, err, row[2], row[3])
			}
		}
	}
	if len(rows) < 12 {
		t.Errorf("only %d ranges", len(rows))
	}
}

// TestDefaultsAreDocumented: the defaults of docs/CONFIG.md are those of the code.
func TestDefaultsAreDocumented(t *testing.T) {
	doc, s, c := readFile(t, "../../docs/CONFIG.md"), strategy.Default(), strategy.DefaultColocation()
	for key, value := range map[string]any{"policy": "`" + s.Policy + "`", "cpuBurstPercent": s.CPUBurstPercent,
		"cfsQuotaBurstPercent": s.CFSQuotaBurstPercent, "cfsQuotaBurstPeriodSeconds": s.CFSQuotaBurstPeriodSeconds,
		"startupSeconds": s.StartupSeconds, "sharePoolThresholdPercent": s.SharePoolThresholdPercent,
		"cpuSuppressThresholdPercent": c.Suppress.ThresholdPercent, "cpuSuppressMinPercent": c.Suppress.MinPercent,
		"floorPercent": c.SchedExt.FloorPercent, "watchdogSeconds": c.SchedExt.WatchdogSeconds} {
		row := fmt.Sprintf("(?m)^\\| `%s` \\|.*\\| %v \\| [^|]* \\|$", key, value)
		if !regexp.MustCompile(row).MatchString(doc) {
			t.Errorf("docs/CONFIG.md does not have %v as the default of %s", value, key)
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
	if got := (Kubernetes{Cluster: cluster}).Node(strategy.DefaultNode(),
		map[string]string{"pool": "web"}); len(bad) > 0 || got.CFSQuotaBurstPercent != 400 {
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
	_, more := ParseCluster("ConfigMap kube-system/ack-slo-config",
		`{"clusterStrategy": {"cfsQuotaBurstPercent": 99}, "nodeStrategies": [{}]}`, Cluster{})
	_, words := ParseClass("Pod default/web", map[string]string{ClassLabel: "lsr"}, "")
	for _, r := range slices.Concat(bad, more, words) {
		if !strings.Contains(doc, "\n"+r.Error()+"\n") {
			t.Errorf("docs/CONFIG.md does not show %v", r)
		}
	}
	for _, key := range []string{Annotation, OldAnnotation, ExclusiveAnnotation, ClassLabel, OldClassLabel, BurstKey,
		NamespaceKey, TenantsKey} {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("docs/CONFIG.md does not name %s", key)
		}
	}
}
