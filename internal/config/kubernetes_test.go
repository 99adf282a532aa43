package config

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
)

func of[T any](v T) *T { return &v }

func messages(bad []*Rejected) []string {
	var list []string
	for _, r := range bad {
		list = append(list, r.Error())
	}
	return list
}

// auto is the strategy of the published tables: every parameter at its documented default, policy auto.
func auto() strategy.Strategy {
	s := strategy.Default()
	s.Policy = strategy.Auto
	return s
}

// What the published pages show: the pod's annotation and its fields.
func TestAnnotations(t *testing.T) {
	last := strategy.Patch{Policy: of(strategy.CPUBurstOnly), CFSQuotaBurstPercent: of(int64(200))}
	for _, c := range []struct {
		name string
		text map[string]string
		want strategy.Patch
		old  bool
		bad  []string
	}{
		{"none", nil, strategy.Patch{}, false, nil},
		{"empty", map[string]string{Annotation: " "}, strategy.Patch{}, false, nil},
		{"auto", map[string]string{Annotation: `{"policy": "auto"}`}, strategy.Patch{Policy: of(strategy.Auto)}, false, nil},
		{"all fields", map[string]string{Annotation: `{"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1, "startupSeconds": 5, "startupBurstPercent": 400}`},
			strategy.Patch{Policy: of(strategy.Auto), CPUBurstPercent: of(int64(1000)), CFSQuotaBurstPercent: of(int64(300)), CFSQuotaBurstPeriodSeconds: of(int64(-1)), StartupSeconds: of(int64(5)), StartupBurstPercent: of(int64(400))}, false, nil},
		{"the threshold is no pod's to say", map[string]string{Annotation: `{"sharePoolThresholdPercent": 500}`}, strategy.Patch{}, false, nil},
		{"the older", map[string]string{OldAnnotation: `{"policy": "none"}`}, strategy.Patch{Policy: of(strategy.None)}, true, nil},
		{"the newer wins", map[string]string{OldAnnotation: `{"policy": "none", "cpuBurstPercent": 5}`, Annotation: `{"policy": "auto"}`}, strategy.Patch{Policy: of(strategy.Auto)}, false, nil},
		{"null inherits, another case and an unknown field are taken as the peers take them",
			map[string]string{Annotation: `{"policy": null, "CPUBURSTPERCENT": 7, "color": {"a": [1]}}`}, strategy.Patch{CPUBurstPercent: of(int64(7))}, false, nil},
		{"a bad field costs itself only", map[string]string{Annotation: `{"policy": "Auto", "cfsQuotaBurstPercent": "150", "cpuBurstPercent": 80, "cfsQuotaBurstPeriodSeconds": -2}`},
			strategy.Patch{Policy: of(strategy.CPUBurstOnly), CFSQuotaBurstPercent: of(int64(200)), CPUBurstPercent: of(int64(80))}, false, []string{
				`Pod default/web: koordinator.sh/cpuBurst: policy: "Auto" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto (did you mean auto?)`,
				`Pod default/web: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: must be a whole number, not "150" (remove the quotes)`,
				`Pod default/web: koordinator.sh/cpuBurst: cfsQuotaBurstPeriodSeconds: -2 is outside -1..31536000`}},
		{"no JSON keeps all", map[string]string{Annotation: `policy: auto`}, last, false, []string{
			`Pod default/web: koordinator.sh/cpuBurst: not JSON: invalid character 'p' looking for beginning of value (such as {"policy": "auto"})`}},
		{"no object keeps all", map[string]string{OldAnnotation: `"auto"`}, last, true, []string{
			`Pod default/web: alibabacloud.com/cpuBurst: must be an object {...}, not "auto"`}},
		{"more than JSON keeps all", map[string]string{Annotation: `{} {}`}, last, false, []string{
			`Pod default/web: koordinator.sh/cpuBurst: not JSON: more text after the end (such as {"policy": "auto"})`}},
	} {
		got, old, bad := ParseAnnotations("Pod default/web", c.text, last)
		if diff := cmp.Diff(c.want, got); diff != "" || old != c.old {
			t.Errorf("%s: old %v, -want +got\n%s", c.name, old, diff)
		}
		if diff := cmp.Diff(c.bad, messages(bad)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// The published parameter tables: each parameter, at the ends of its documented range and beyond, in both places.
func TestRanges(t *testing.T) {
	for field, ends := range map[string][2]int64{
		"cpuBurstPercent": {0, 10000}, "cfsQuotaBurstPercent": {100, 10000},
		"cfsQuotaBurstPeriodSeconds": {-1, 365 * 24 * 3600}, "sharePoolThresholdPercent": {0, 100},
	} {
		for v, good := range map[int64]bool{ends[0]: true, ends[1]: true, ends[0] - 1: false, ends[1] + 1: false} {
			text := strings.NewReplacer("F", field, "V", strconv.FormatInt(v, 10)).Replace(`{"clusterStrategy": {"F": V}}`)
			if _, bad := ParseCluster("ConfigMap a/b", text, Cluster{}); (len(bad) == 0) != good {
				t.Errorf("%s: %v", text, messages(bad))
			} else if !good && bad[0].Field != "clusterStrategy."+field {
				t.Errorf("%s: field %s", text, bad[0].Field)
			}
		}
	}
}

const nodes = `{"clusterStrategy": {"policy": "auto", "cpuBurstPercent": 800, "sharePoolThresholdPercent": 60},
 "nodeStrategies": [
  {"name": "web", "nodeSelector": {"matchLabels": {"pool": "web"}}, "policy": "cfsQuotaBurstOnly", "cfsQuotaBurstPercent": 400},
  {"name": "gpu", "nodeSelector": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}, {"key": "pool", "operator": "NotIn", "values": ["db"]}]}, "policy": "none"},
  {"name": "rest", "nodeSelector": {}, "cpuBurstPercent": 700}]}`

func TestNodeStrategies(t *testing.T) {
	c, bad := ParseCluster("ConfigMap a/b", nodes, Cluster{})
	if len(bad) > 0 {
		t.Fatal(messages(bad))
	}
	k := Kubernetes{Cluster: c}
	for _, x := range []struct {
		labels map[string]string
		want   func(*strategy.Strategy)
	}{
		{nil, func(s *strategy.Strategy) { s.CPUBurstPercent = 700 }},
		{map[string]string{"pool": "web", "gpu": "1"}, func(s *strategy.Strategy) { s.Policy, s.CFSQuotaBurstPercent = strategy.CFSQuotaBurstOnly, 400 }}, // the first
		{map[string]string{"gpu": ""}, func(s *strategy.Strategy) { s.Policy = strategy.None }},
		{map[string]string{"gpu": "", "pool": "db"}, func(s *strategy.Strategy) { s.CPUBurstPercent = 700 }},
	} {
		want := auto()
		want.CPUBurstPercent, want.SharePoolThresholdPercent = 800, 60
		x.want(&want)
		if diff := cmp.Diff(want, k.Node(strategy.Default(), x.labels)); diff != "" {
			t.Errorf("%v: -want +got\n%s", x.labels, diff)
		}
	}
}

// What is bad keeps its last good value, entry by entry and field by field.
func TestClusterKeepsWhatWasGood(t *testing.T) {
	last, _ := ParseCluster("", nodes, Cluster{})
	web := map[string]string{"pool": "web"}
	for _, c := range []struct {
		text   string
		policy strategy.Policy // of a node of pool web
		bad    []string
	}{
		{`{`, strategy.CFSQuotaBurstOnly, []string{`ConfigMap a/b: cpu-burst-config: not JSON: unexpected EOF (such as {"policy": "auto"})`}},
		{``, strategy.None, nil},
		{`{}`, strategy.None, nil},
		{`null`, strategy.None, nil},
		{`{"clusterStrategy": {"policy": "on"}}`, strategy.Auto, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy.policy: "on" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`}},
		{`{"clusterStrategy": [], "nodeStrategies": {}}`, strategy.CFSQuotaBurstOnly, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy: must be an object {...}, not []`,
			`ConfigMap a/b: cpu-burst-config: nodeStrategies: must be a list [...], not {}`}},
		{`{"nodeStrategies": [{"name": "web", "nodeSelector": {"matchLabels": {"pool": 1}}, "policy": "none"}]}`, strategy.CFSQuotaBurstOnly, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchLabels.pool: must be text, not 1`}},
		{`{"nodeStrategies": [{"name": "web", "nodeSelector": {"matchLabels": {"pool": "web"}}, "policy": "x"}]}`, strategy.CFSQuotaBurstOnly, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].policy: "x" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`}},
		{`{"clusterStrategy": {"loadLinePercent": 99.9, "policy": "auto"}}`, strategy.Auto, nil},
		{`{"clusterStrategy": {"loadLinePercent": 40}}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy.loadLinePercent: 40 is neither 0 nor within 50..99.999`}},
		{`{"clusterStrategy": {"loadLinePercent": "x"}}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy.loadLinePercent: must be a number, not "x"`}},
		{`{"nodeStrategies": [{"name": "new", "policy": "auto"}, 5]}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector: missing (such as {"matchLabels": {"pool": "web"}}, or {} for every node)`,
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[1]: must be an object {...}, not 5`}},
		{`{"nodeStrategies": [{"name": "a", "nodeSelector": {"matchExpressions": [{"operator": "in"}, {"key": "k", "operator": "In"}, {"key": "k", "operator": "Exists", "values": ["v"]}]}}]}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[0].key: missing`,
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[1].values: In takes at least one`,
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[2].values: Exists takes none`}},
		{`{"nodeStrategies": [{"nodeSelector": {"matchExpressions": [{"key": "k", "operator": "in", "values": ["v"]}]}}]}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[0].operator: "in" is not one of In, NotIn, Exists, DoesNotExist (did you mean In?)`}},
	} {
		got, bad := ParseCluster("ConfigMap a/b", c.text, last)
		if diff := cmp.Diff(c.bad, messages(bad)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.text, diff)
		}
		if p := (Kubernetes{Cluster: got}).Node(strategy.Default(), web).Policy; p != c.policy {
			t.Errorf("%s: policy %s, want %s", c.text, p, c.policy)
		}
	}
}

// A section that cannot be read keeps all that it said.
func TestSectionKeepsWhatWasGood(t *testing.T) {
	last, _ := ParseCluster("", nodes, Cluster{})
	got, _ := ParseCluster("", `{"clusterStrategy": 1}`, last)
	if s := (Kubernetes{Cluster: got}).Node(strategy.Default(), nil); s.Policy != strategy.Auto || s.SharePoolThresholdPercent != 60 {
		t.Errorf("%+v", s)
	}
}

// Fields for the whole node are the administrator's to set. A pod may not set them.
func TestLoadLine(t *testing.T) {
	c, bad := ParseCluster("", `{"clusterStrategy": {"loadLinePercent": 99.9}}`, Cluster{})
	if got := (Kubernetes{Cluster: c}).Node(strategy.Default(), nil).LoadLinePercent; got != 99.9 || bad != nil {
		t.Errorf("%v, %v", got, messages(bad))
	}
	if p, _, bad := ParseAnnotations("", map[string]string{Annotation: `{"loadLinePercent": 99.9}`}, strategy.Patch{}); p.LoadLinePercent != nil || bad != nil {
		t.Errorf("%+v, %v", p, messages(bad))
	}
}

func TestNamespaces(t *testing.T) {
	n, bad := ParseNamespaces("ConfigMap a/b", `{"enabledNamespaces": ["white-ns", "both"], "disabledNamespaces": ["black-ns", "both", 3]}`, Namespaces{})
	want := []string{`ConfigMap a/b: cpu-burst: disabledNamespaces[2]: must be text, not 3`}
	if diff := cmp.Diff(want, messages(bad)); diff != "" {
		t.Error(diff)
	}
	again, bad := ParseNamespaces("ConfigMap a/b", `{"enabledNamespaces": "white-ns"}`, n)
	if diff := cmp.Diff([]string{`ConfigMap a/b: cpu-burst: enabledNamespaces: must be a list [...], not "white-ns"`}, messages(bad)); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		n    Namespaces
		ns   string
		want *strategy.Policy
	}{
		{n, "white-ns", of(strategy.Auto)}, {n, "black-ns", of(strategy.None)}, {n, "both", of(strategy.None)}, {n, "other", nil},
		{again, "white-ns", of(strategy.Auto)}, {again, "both", of(strategy.Auto)}, {again, "black-ns", nil},
	} {
		if diff := cmp.Diff(strategy.Patch{Policy: c.want}, c.n.For(c.ns)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.ns, diff)
		}
	}
}

// Each level lays only what it names over the one before: file, cluster, node, namespace, annotation.
func TestPrecedence(t *testing.T) {
	own := strategy.Default()
	own.CFSQuotaBurstPeriodSeconds = 30
	cluster, _ := ParseCluster("", nodes, Cluster{})
	spaces, _ := ParseNamespaces("", `{"enabledNamespaces": ["on"], "disabledNamespaces": ["off"]}`, Namespaces{})
	k := Kubernetes{Cluster: cluster, Namespaces: spaces}
	node := k.Node(own, map[string]string{"pool": "web"})
	asked := func(ns, text string) Asked {
		p, _, _ := ParseAnnotations("", map[string]string{Annotation: text}, strategy.Patch{})
		return Asked{Annotated: text != "", Patch: p, Share: Share{Namespace: ns}}
	}
	for _, c := range []struct {
		asked  Asked
		policy strategy.Policy
		quota  int64
	}{
		{asked("plain", ""), strategy.CFSQuotaBurstOnly, 400},
		{asked("on", ""), strategy.Auto, 400},
		{asked("off", ""), strategy.None, 400},
		{asked("off", `{"policy": "cpuBurstOnly"}`), strategy.CPUBurstOnly, 400},
		{asked("off", `{"cfsQuotaBurstPercent": 150}`), strategy.None, 150},
		{asked("plain", `{"cfsQuotaBurstPercent": 150}`), strategy.CFSQuotaBurstOnly, 150},
	} {
		got, cut := k.Pod("Pod a/b", node, c.asked)
		want := strategy.Strategy{Policy: c.policy, CPUBurstPercent: 800, CFSQuotaBurstPercent: c.quota, CFSQuotaBurstPeriodSeconds: 30, StartupSeconds: 60, SharePoolThresholdPercent: 60}
		if diff := cmp.Diff(want, got); diff != "" || cut != nil {
			t.Errorf("%+v: cut %v, -want +got\n%s", c.asked, cut, diff)
		}
	}
}

func TestMaxima(t *testing.T) {
	m, bad := ParseMaxima("ConfigMap a/b", `{"cpuBurstPercent": 100, "cfsQuotaBurstPercent": 250, "cfsQuotaBurstPeriodSeconds": 60,
		"extraCoresPerPod": 0.3, "extraCoresPerNamespace": 1, "exemptNamespaces": ["trusted"]}`, Maxima{})
	if bad != nil {
		t.Fatal(messages(bad))
	}
	k := Kubernetes{Maxima: m}
	for _, c := range []struct {
		name string
		text string
		s    Share
		want strategy.Strategy
		bad  []string
	}{
		{"cut to the maxima without a word where nothing was named", `{"policy": "auto"}`, Share{PodCPUs: 0.1, NamespaceCPUs: 0.1},
			strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 100, CFSQuotaBurstPercent: 250, CFSQuotaBurstPeriodSeconds: 60, StartupSeconds: 60, SharePoolThresholdPercent: 50}, nil},
		{"by the pod's cores", `{"policy": "auto", "cfsQuotaBurstPercent": 200}`, Share{PodCPUs: 0.5, NamespaceCPUs: 0.5},
			strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 100, CFSQuotaBurstPercent: 160, CFSQuotaBurstPeriodSeconds: 60, StartupSeconds: 60, SharePoolThresholdPercent: 50},
			[]string{`Pod a/b: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: 200 is above the administrator's extraCoresPerPod: cut to 160`}},
		{"by the namespace's cores", `{"policy": "auto"}`, Share{PodCPUs: 0.5, NamespaceCPUs: 4},
			strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 100, CFSQuotaBurstPercent: 125, CFSQuotaBurstPeriodSeconds: 60, StartupSeconds: 60, SharePoolThresholdPercent: 50}, nil},
		{"lowering is free", `{"policy": "auto", "cpuBurstPercent": 50, "cfsQuotaBurstPercent": 110, "cfsQuotaBurstPeriodSeconds": 5}`, Share{PodCPUs: 0.5, NamespaceCPUs: 0.5},
			strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 50, CFSQuotaBurstPercent: 110, CFSQuotaBurstPeriodSeconds: 5, StartupSeconds: 60, SharePoolThresholdPercent: 50}, nil},
		{"a start is bound by the same", `{"policy": "auto", "cfsQuotaBurstPercent": 110, "startupBurstPercent": 200}`, Share{PodCPUs: 0.5, NamespaceCPUs: 0.5},
			strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 100, CFSQuotaBurstPercent: 110, CFSQuotaBurstPeriodSeconds: 60, StartupSeconds: 60, StartupBurstPercent: 160, SharePoolThresholdPercent: 50},
			[]string{`Pod a/b: koordinator.sh/cpuBurst: startupBurstPercent: 200 is above the administrator's extraCoresPerPod: cut to 160`}},
		{"no bound is above any", `{"policy": "cfsQuotaBurstOnly", "cfsQuotaBurstPeriodSeconds": -1}`, Share{},
			strategy.Strategy{Policy: strategy.CFSQuotaBurstOnly, CPUBurstPercent: 1000, CFSQuotaBurstPercent: 250, CFSQuotaBurstPeriodSeconds: 60, StartupSeconds: 60, SharePoolThresholdPercent: 50},
			[]string{`Pod a/b: koordinator.sh/cpuBurst: cfsQuotaBurstPeriodSeconds: -1 is above the administrator's maximum: cut to 60`}},
		{"allowed", `{"policy": "auto", "cfsQuotaBurstPercent": 900}`, Share{Namespace: "trusted", PodCPUs: 4},
			strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 1000, CFSQuotaBurstPercent: 900, CFSQuotaBurstPeriodSeconds: -1, StartupSeconds: 60, SharePoolThresholdPercent: 50}, nil},
		{"nothing is raised", `{"policy": "none", "cfsQuotaBurstPercent": 900, "cpuBurstPercent": 900}`, Share{PodCPUs: 4},
			strategy.Strategy{Policy: strategy.None, CPUBurstPercent: 900, CFSQuotaBurstPercent: 900, CFSQuotaBurstPeriodSeconds: -1, StartupSeconds: 60, SharePoolThresholdPercent: 50}, nil},
		{"the administrator is not bound", ``, Share{PodCPUs: 4}, strategy.Default(), nil},
	} {
		p, _, _ := ParseAnnotations("", map[string]string{Annotation: c.text}, strategy.Patch{})
		got, cut := k.Pod("Pod a/b", strategy.Default(), Asked{Annotated: c.text != "", Patch: p, Share: c.s})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.bad, messages(cut)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// TestStartIsBoundByTheAdministrator: an annotation cannot give a start more than the pod would have without the annotation;
// neither does it lose what the administrator gives.
func TestStartIsBoundByTheAdministrator(t *testing.T) {
	for name, c := range map[string]struct {
		own, quota int64 // the administrator's startupBurstPercent, 0 where it is not said, and cfsQuotaBurstPercent
		text       string
		namespace  string
		want       int64
		bad        string
	}{
		"default":             {0, 150, `{"policy": "auto", "startupBurstPercent": 1000}`, "", 150, "1000 is above the administrator's cfsQuotaBurstPercent: cut to 150"},
		"said":                {400, 150, `{"policy": "auto", "startupBurstPercent": 1000}`, "", 400, "1000 is above the administrator's startupBurstPercent: cut to 400"},
		"with a larger quota": {0, 150, `{"policy": "auto", "cfsQuotaBurstPercent": 200, "startupBurstPercent": 1000}`, "", 150, "1000 is above the administrator's cfsQuotaBurstPercent: cut to 150"},
		"lowering is free":    {400, 150, `{"policy": "auto", "startupBurstPercent": 120}`, "", 120, ""},
		"not set":             {400, 150, `{"policy": "auto"}`, "", 400, ""},
		"no annotation":       {400, 150, "", "", 400, ""},
		"an exempt namespace": {0, 150, `{"policy": "auto", "startupBurstPercent": 1000}`, "trusted", 1000, ""},
	} {
		node := auto()
		node.StartupBurstPercent, node.CFSQuotaBurstPercent = c.own, c.quota
		p, _, _ := ParseAnnotations("", map[string]string{Annotation: c.text}, strategy.Patch{})
		k := Kubernetes{Maxima: Maxima{exempt: []string{"trusted"}}}
		got, cut := k.Pod("Pod a/b", node, Asked{Annotated: c.text != "", Patch: p, Share: Share{Namespace: c.namespace}})
		if got.StartupBurstPercent != c.want {
			t.Errorf("%s: %d, want %d", name, got.StartupBurstPercent, c.want)
		}
		if said := strings.Join(messages(cut), "\n"); (c.bad == "") != (said == "") || !strings.Contains(said, c.bad) {
			t.Errorf("%s: said %q, want %q", name, said, c.bad)
		}
	}
}

func TestMaximaDoNotBindTheAdministrator(t *testing.T) {
	k := Kubernetes{Maxima: Maxima{CFSQuotaBurstPercent: of(int64(150))}}
	if got, cut := k.Pod("o", auto(), Asked{}); got != auto() || cut != nil {
		t.Errorf("%+v, %v", got, cut)
	}
}

// Extra cores in percent of the limits: exact where they are a whole percent.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		extra, limits float64
		want          int64
	}{{0.3, 0.1, 400}, {0.3, 0.5, 160}, {1, 3, 133}, {0, 1, 100}, {8192, 1e-9, 1000100}} {
		if got := percent(&c.extra, c.limits); got != c.want {
			t.Errorf("%v above %v: %d %%, want %d", c.extra, c.limits, got, c.want)
		}
	}
	if got := percent(nil, 1); got != math.MaxInt64 {
		t.Error(got)
	}
}

func TestParseMaximaKeepsWhatWasGood(t *testing.T) {
	last := Maxima{CPUBurstPercent: of(int64(10)), ExtraCoresPerPod: of(1.5), exempt: []string{"kube-system"}}
	got, bad := ParseMaxima("o", `{"cpuBurstPercent": -1, "extraCoresPerPod": -1, "extraCoresPerNamespace": "2", "exemptNamespaces": "x"}`, last)
	if diff := cmp.Diff(last, got, cmp.AllowUnexported(Maxima{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"o: plimsoll-maxima: cpuBurstPercent: -1 is outside 0..10000", "o: plimsoll-maxima: extraCoresPerPod: -1 is outside 0..8192",
		`o: plimsoll-maxima: extraCoresPerNamespace: must be a number, not "2" (remove the quotes)`,
		`o: plimsoll-maxima: exemptNamespaces: must be a list [...], not "x"`}, messages(bad)); diff != "" {
		t.Error(diff)
	}
	if got, _ := ParseMaxima("o", "[", last); got.CPUBurstPercent == nil {
		t.Error("no JSON, and the last value is lost")
	}
	if got, _ := ParseMaxima("o", "", last); got.CPUBurstPercent != nil {
		t.Error("nothing is said any more, and the last value stays")
	}
}
