package config

import (
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
		{"auto", map[string]string{Annotation: `{"policy": "auto"}`}, strategy.Patch{Policy: of(strategy.Auto)}, false,
			nil},
		{"all fields",
			map[string]string{
				Annotation: `{"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1, "startupSeconds": 5, "startupBurstPercent": 400}`},
			strategy.Patch{Policy: of(strategy.Auto), CPUBurstPercent: of(int64(1000)),
				CFSQuotaBurstPercent: of(int64(300)), CFSQuotaBurstPeriodSeconds: of(int64(-1)),
				StartupSeconds: of(int64(5)), StartupBurstPercent: of(int64(400))}, false, nil},
		{"the threshold is no pod's to say", map[string]string{Annotation: `{"sharePoolThresholdPercent": 500}`},
			strategy.Patch{}, false, nil},
		{"the older", map[string]string{OldAnnotation: `{"policy": "none"}`}, strategy.Patch{Policy: of(strategy.None)},
			true, nil},
		{"the newer wins", map[string]string{OldAnnotation: `{"policy": "none", "cpuBurstPercent": 5}`,
			Annotation: `{"policy": "auto"}`}, strategy.Patch{Policy: of(strategy.Auto)}, false, nil},
		{"null inherits, another case and an unknown field are taken as the peers take them",
			map[string]string{Annotation: `{"policy": null, "CPUBURSTPERCENT": 7, "color": {"a": [1]}}`},
			strategy.Patch{CPUBurstPercent: of(int64(7))}, false, nil},
		{"a bad field costs itself only",
			map[string]string{
				Annotation: `{"policy": "Auto", "cfsQuotaBurstPercent": "150", "cpuBurstPercent": 80, "cfsQuotaBurstPeriodSeconds": -2}`},
			strategy.Patch{Policy: of(strategy.CPUBurstOnly), CFSQuotaBurstPercent: of(int64(200)),
				CPUBurstPercent: of(int64(80))}, false, []string{
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
			text := strings.NewReplacer("F", field, "V", strconv.FormatInt(v,
				10)).Replace(`{"clusterStrategy": {"F": V}}`)
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
		// the first
		{map[string]string{"pool": "web", "gpu": "1"},
			func(s *strategy.Strategy) { s.Policy, s.CFSQuotaBurstPercent = strategy.CFSQuotaBurstOnly, 400 }},
		{map[string]string{"gpu": ""}, func(s *strategy.Strategy) { s.Policy = strategy.None }},
		{map[string]string{"gpu": "", "pool": "db"}, func(s *strategy.Strategy) { s.CPUBurstPercent = 700 }},
	} {
		want := auto()
		want.CPUBurstPercent, want.SharePoolThresholdPercent = 800, 60
		x.want(&want)
		if diff := cmp.Diff(strategy.Node{Strategy: want}, k.Node(strategy.DefaultNode(), x.labels)); diff != "" {
			t.Errorf("%v: -want +got\n%s", x.labels, diff)
		}
		if diff := cmp.Diff(want, k.Container(strategy.Default(), x.labels)); diff != "" {
			t.Errorf("a container, %v: -want +got\n%s", x.labels, diff)
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
		{`{`, strategy.CFSQuotaBurstOnly,
			[]string{`ConfigMap a/b: cpu-burst-config: not JSON: unexpected EOF (such as {"policy": "auto"})`}},
		{``, strategy.None, nil},
		{`{}`, strategy.None, nil},
		{`null`, strategy.None, nil},
		{`{"clusterStrategy": {"policy": "on"}}`, strategy.Auto, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy.policy: "on" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`}},
		{`{"clusterStrategy": [], "nodeStrategies": {}}`, strategy.CFSQuotaBurstOnly, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy: must be an object {...}, not []`,
			`ConfigMap a/b: cpu-burst-config: nodeStrategies: must be a list [...], not {}`}},
		{`{"nodeStrategies": [{"name": "web", "nodeSelector": {"matchLabels": {"pool": 1}}, "policy": "none"}]}`,
			strategy.CFSQuotaBurstOnly, []string{
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchLabels.pool: must be text, not 1`}},
		{`{"nodeStrategies": [{"name": "web", "policy": "none"}]}`, strategy.CFSQuotaBurstOnly, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector: missing (such as {"matchLabels": {"pool": "web"}}, or {} for every node)`}},
		{`{"nodeStrategies": [{"name": "web", "nodeSelector": {"pool": "web"}, "policy": "none"}]}`,
			strategy.CFSQuotaBurstOnly, []string{
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.pool: unknown field`}},
		{`{"nodeStrategies": [{"name": "new", "nodeSelector": {"matchLabel": {"pool": "db"}}, "policy": "auto"}]}`,
			strategy.None, []string{
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchLabel: unknown field (did you mean matchLabels?)`}},
		{`{"nodeStrategies": [{"name": "web", "nodeSelector": {"matchLabels": {"pool": "web"}}, "policy": "x"}]}`,
			strategy.CFSQuotaBurstOnly, []string{
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].policy: "x" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`}},
		{`{"clusterStrategy": {"loadLinePercent": 99.9, "policy": "auto"}}`, strategy.Auto, nil},
		{`{"clusterStrategy": {"loadLinePercent": 40}}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy.loadLinePercent: 40 is neither 0 nor within 50..99.999`}},
		{`{"clusterStrategy": {"loadLinePercent": "x"}}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: clusterStrategy.loadLinePercent: must be a number, not "x"`}},
		{`{"nodeStrategies": [{"name": "new", "policy": "auto"}, 5]}`, strategy.None, []string{
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector: missing (such as {"matchLabels": {"pool": "web"}}, or {} for every node)`,
			`ConfigMap a/b: cpu-burst-config: nodeStrategies[1]: must be an object {...}, not 5`}},
		{
			`{"nodeStrategies": [{"name": "a", "nodeSelector": {"matchExpressions": [{"operator": "in"}, {"key": "k", "operator": "In"}, {"key": "k", "operator": "Exists", "values": ["v"]}]}}]}`, strategy.None, []string{
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[0].key: missing`,
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[1].values: In takes at least one`,
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[2].values: Exists takes none`}},
		{
			`{"nodeStrategies": [{"nodeSelector": {"matchExpressions": [{"key": "k", "operator": "in", "values": ["v"]}]}}]}`, strategy.None, []string{
				`ConfigMap a/b: cpu-burst-config: nodeStrategies[0].nodeSelector.matchExpressions[0].operator: "in" is not one of In, NotIn, Exists, DoesNotExist (did you mean In?)`}},
	} {
		got, bad := ParseCluster("ConfigMap a/b", c.text, last)
		if diff := cmp.Diff(c.bad, messages(bad)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.text, diff)
		}
		if p := (Kubernetes{Cluster: got}).Node(strategy.DefaultNode(), web).Policy; p != c.policy {
			t.Errorf("%s: policy %s, want %s", c.text, p, c.policy)
		}
	}
}

// TestBadAfterManyFaults: a selector and a list of maxima that are bad are not used, also where so many faults stand
// before them that theirs are not listed.
func TestBadAfterManyFaults(t *testing.T) {
	many := strings.Repeat(`1, `, mostFaults)
	c, bad := ParseCluster("", `{"nodeStrategies": [`+many+`{"nodeSelector": {"matchLabels": {"pool": 1}}, "policy": "auto"}]}`,
		Cluster{})
	if p := (Kubernetes{Cluster: c}).Node(strategy.DefaultNode(), nil).Policy; p != strategy.None {
		t.Errorf("policy %s; %v", p, messages(bad))
	}
	tenants, bad := ParseTenants("", `{"exclusiveNamespaces": [`+many+`"a"], "annotationMaxima": [{"cpuBurstPercent": 900}]}`,
		Tenants{})
	if tenants.maxima != nil {
		t.Errorf("%+v; %v", tenants.maxima, messages(bad))
	}
}

// A section that cannot be read keeps all that it said.
func TestSectionKeepsWhatWasGood(t *testing.T) {
	last, _ := ParseCluster("", nodes, Cluster{})
	got, _ := ParseCluster("", `{"clusterStrategy": 1}`, last)
	if s := (Kubernetes{Cluster: got}).Node(strategy.DefaultNode(), nil); s.Policy != strategy.Auto ||
		s.SharePoolThresholdPercent != 60 {
		t.Errorf("%+v", s)
	}
}

// Fields for the whole node are the administrator's to set. A pod may not set them.
func TestLoadLine(t *testing.T) {
	c, bad := ParseCluster("", `{"clusterStrategy": {"loadLinePercent": 99.9}}`, Cluster{})
	if got := (Kubernetes{Cluster: c}).Node(strategy.DefaultNode(), nil).LoadLinePercent; got != 99.9 || bad != nil {
		t.Errorf("%v, %v", got, messages(bad))
	}
	if p, _, bad := ParseAnnotations("", map[string]string{Annotation: `{"loadLinePercent": 99.9}`},
		strategy.Patch{}); p.LoadLinePercent != nil || bad != nil {
		t.Errorf("%+v, %v", p, messages(bad))
	}
}

func TestNamespaces(t *testing.T) {
	n, bad := ParseNamespaces("ConfigMap a/b",
		`{"enabledNamespaces": ["white-ns", "both"], "disabledNamespaces": ["black-ns", "both", 3]}`, Namespaces{})
	want := []string{`ConfigMap a/b: cpu-burst: disabledNamespaces[2]: must be text, not 3`}
	if diff := cmp.Diff(want, messages(bad)); diff != "" {
		t.Error(diff)
	}
	again, bad := ParseNamespaces("ConfigMap a/b", `{"enabledNamespaces": "white-ns"}`, n)
	if diff := cmp.Diff([]string{`ConfigMap a/b: cpu-burst: enabledNamespaces: must be a list [...], not "white-ns"`},
		messages(bad)); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		n    Namespaces
		ns   string
		want *strategy.Policy
	}{
		{n, "white-ns", of(strategy.Auto)}, {n, "black-ns", of(strategy.None)}, {n, "both", of(strategy.None)},
		{n, "other", nil},
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
	node := k.Container(own, map[string]string{"pool": "web"})
	asked := func(ns, text string) Asked {
		p, _, _ := ParseAnnotations("", map[string]string{Annotation: text}, strategy.Patch{})
		return askedFor(ns, text, p)
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
		g := k.Pod("Pod a/b", node, c.asked)
		got, cut := g.Strategy, g.Cuts
		want := strategy.Strategy{Policy: c.policy, CPUBurstPercent: 800, CFSQuotaBurstPercent: c.quota,
			CFSQuotaBurstPeriodSeconds: 30, StartupSeconds: 60, SharePoolThresholdPercent: 60}
		if diff := cmp.Diff(want, got); diff != "" || cut != nil {
			t.Errorf("%+v: cut %v, -want +got\n%s", c.asked, cut, diff)
		}
	}
}
