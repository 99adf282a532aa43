package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
)

// recorded is what the peer's documentation has for resource-qos-config,
// with other keys beside that are other programs'.
const recorded = `{
  "clusterStrategy": {
    "policies": {"cpuPolicy": "groupIdentity"},
    "lsrClass": {"cpuQOS": {"enable": true, "groupIdentity": 2}, "memoryQOS": {"enable": true}},
    "lsClass": {"cpuQOS": {"enable": true, "groupIdentity": 2}},
    "beClass": {"cpuQOS": {"enable": true, "groupIdentity": -1}}},
  "nodeStrategies": [
    {"name": "smt", "nodeSelector": {"matchLabels": {"pool": "smt"}}, "policies": {"cpuPolicy": "coreSched"},
     "beClass": {"cpuQOS": {"schedIdle": 1, "coreExpeller": true}}},
    {"name": "off", "nodeSelector": {"matchLabels": {"pool": "off"}}, "beClass": {"cpuQOS": {"enable": false}}}]}`

func TestQOSOfTheCluster(t *testing.T) {
	c, bad := ParseQOS("", recorded, Cluster{})
	if len(bad) > 0 {
		t.Fatal(messages(bad))
	}
	for pool, want := range map[string]struct {
		mechanism strategy.Mechanism
		be        strategy.CPUQOS
		rank      strategy.Rank
	}{
		"": {strategy.MechanismAuto, strategy.CPUQOS{Enable: true, GroupIdentity: -1}, strategy.Offline},
		"smt": {strategy.MechanismCoreSched, strategy.CPUQOS{Enable: true, GroupIdentity: -1, SchedIdle: 1,
			CoreExpeller: true}, strategy.Offline},
		"off": {strategy.MechanismAuto, strategy.CPUQOS{GroupIdentity: -1}, strategy.Neutral},
	} {
		got := (Kubernetes{QOS: c}).Node(strategy.DefaultNode(), map[string]string{"pool": pool}).Colocation
		if got.Mechanism != want.mechanism || got.BE != want.be || got.BE.Rank() != want.rank || !got.LS.Enable ||
			got.System.Enable {
			t.Errorf("pool %q: %+v", pool, got)
		}
	}
	if got := (Kubernetes{}).Node(strategy.DefaultNode(), nil); got != strategy.DefaultNode() {
		t.Errorf("without the key: %+v", got)
	}
	c, _ = ParseQOS("", `{"clusterStrategy": {"policies": {"cpuPolicy": "coreSched"}},
		"nodeStrategies": [{"nodeSelector": {}, "policies": {"cpuPolicy": "groupIdentity"}}]}`, Cluster{})
	over := (Kubernetes{QOS: c}).Node(strategy.DefaultNode(), nil).Colocation
	if over.Mechanism != strategy.MechanismAuto {
		t.Errorf("groupIdentity of a node over the cluster's coreSched: %s", over.Mechanism)
	}
}

// What the node's own file says is the weakest.
func TestQOSOverTheFile(t *testing.T) {
	own := mustParse(t,
		"colocation: {enable: true, mechanism: weight, systemClass: {cpuQOS: {groupIdentity: -2}}}").Node()
	c, _ := ParseQOS("", `{"clusterStrategy": {"beClass": {"cpuQOS": {"enable": false}}}}`, Cluster{})
	got := (Kubernetes{QOS: c}).Node(own, nil).Colocation
	if got.Mechanism != strategy.MechanismWeight || got.BE.Enable || !got.LS.Enable || got.System.GroupIdentity != -2 {
		t.Errorf("%+v", got)
	}
	c, _ = ParseQOS("", recorded, Cluster{})
	if got := (Kubernetes{QOS: c}).Node(own, nil).Colocation; got.Mechanism != strategy.MechanismAuto {
		t.Errorf("groupIdentity of the cluster over the file's weight: %s", got.Mechanism)
	}
}

// What is bad keeps its last good value, field by field.
func TestQOSKeepsWhatWasGood(t *testing.T) {
	last, _ := ParseQOS("", recorded, Cluster{})
	for text, want := range map[string]struct {
		be  strategy.CPUQOS
		bad []string
	}{
		`{`: {strategy.CPUQOS{Enable: true, GroupIdentity: -1},
			[]string{`ConfigMap a/b: resource-qos-config: not JSON: unexpected EOF (such as {"policy": "auto"})`}},
		`{"clusterStrategy": {"beClass": {"cpuQOS": {"enable": "yes", "groupIdentity": -3, "schedIdle": 2}}, "policies": {"cpuPolicy": "coreschd"}}}`: {
			strategy.CPUQOS{Enable: true, GroupIdentity: -1}, []string{
				`ConfigMap a/b: resource-qos-config: clusterStrategy.beClass.cpuQOS.enable: must be true or false, not "yes"`,
				`ConfigMap a/b: resource-qos-config: clusterStrategy.beClass.cpuQOS.groupIdentity: -3 is outside -2..2`,
				`ConfigMap a/b: resource-qos-config: clusterStrategy.beClass.cpuQOS.schedIdle: 2 is neither 0 nor 1`,
				`ConfigMap a/b: resource-qos-config: clusterStrategy.policies.cpuPolicy: "coreschd" is neither groupIdentity nor coreSched (did you mean coreSched?)`}},
		`{"clusterStrategy": {"beClass": 7}}`: {strategy.CPUQOS{Enable: true, GroupIdentity: -1},
			[]string{`ConfigMap a/b: resource-qos-config: clusterStrategy.beClass: must be an object {...}, not 7`}},
		``: {strategy.CPUQOS{}, nil},
	} {
		c, bad := ParseQOS("ConfigMap a/b", text, last)
		got := (Kubernetes{QOS: c}).Node(strategy.DefaultNode(), nil).Colocation.BE
		if diff := cmp.Diff(want.bad, messages(bad)); got != want.be || diff != "" {
			t.Errorf("%s: %+v\n-want +got\n%s", text, got, diff)
		}
	}
}

// TestNoPodIsPreferredToItsClass: an annotation lowers what a pod gets, and lifts it neither above what the
// administrator gives the class, nor out of it.
func TestNoPodIsPreferredToItsClass(t *testing.T) {
	on := func(identity, idle int64, expels bool) strategy.CPUQOS {
		return strategy.CPUQOS{Enable: true, GroupIdentity: identity, SchedIdle: idle, CoreExpeller: expels}
	}
	off := strategy.CPUQOS{GroupIdentity: 2, CoreExpeller: true}
	const greedy = `{"enable": true, "groupIdentity": 2, "schedIdle": 0, "coreExpeller": true}`
	for _, c := range []struct {
		name  string
		class strategy.CPUQOS
		asked string
		want  strategy.CPUQOS
		cut   string
	}{
		{"nothing asked", on(1, 0, false), ``, on(1, 0, false), ""},
		{"as its class", on(2, 0, true), greedy, on(2, 0, true), ""},
		{"lower", on(2, 0, true), `{"groupIdentity": -1}`, on(-1, 0, true), ""},
		{"idle", on(-1, 0, false), `{"schedIdle": 1}`, on(-1, 1, false), ""},
		{"more", on(1, 0, false), greedy, on(1, 0, false), "online (2) asked, online (1) given"},
		{"a class without preference", on(0, 0, false), greedy, on(0, 0, false), "online (2) asked, neutral (0) given"},
		{"a class that has no part in it", off, greedy, off, "online (2) asked, neutral (0) given"},
		{"an offline class", on(-1, 0, false), `{"enable": false}`, on(-1, 0, false),
			"neutral (0) asked, offline (-1) given"},
		{"an idle class", on(2, 1, false), `{"schedIdle": 0, "groupIdentity": -1}`, on(2, 1, false),
			"offline (-1) asked, offline (-3) given"},
		{"a core for itself", on(2, 0, false), `{"coreExpeller": true}`, on(2, 0, false),
			"coreExpeller: true asked, false given"},
	} {
		p, bad := ParseQOSAnnotation("Pod a/b", c.asked, strategy.CPUQOSPatch{})
		got, cut := QOSOf("Pod a/b", c.class, p)
		var text []string
		for _, one := range cut {
			text = append(text, one.String())
		}
		var want []string
		if c.cut != "" {
			want = []string{"Pod a/b: koordinator.sh/cpuQOS: " + c.cut + ": what its class gets"}
		}
		if diff := cmp.Diff(want, text); got != c.want || diff != "" || len(bad) > 0 {
			t.Errorf("%s: %+v, want %+v; %v %s", c.name, got, c.want, messages(bad), diff)
		}
	}
}

func TestQOSAnnotation(t *testing.T) {
	class := strategy.CPUQOS{Enable: true, GroupIdentity: 2}
	for text, want := range map[string]strategy.CPUQOS{
		"":                                    class,
		`{"groupIdentity": -1}`:               {Enable: true, GroupIdentity: -1},
		`{"enable": false}`:                   {GroupIdentity: 2},
		`{"groupIdentity": 9, "schedIdle":1}`: {Enable: true, GroupIdentity: 2, SchedIdle: 1},
	} {
		p, bad := ParseQOSAnnotation("Pod a/b", text, strategy.CPUQOSPatch{})
		if got := p.Over(class); got != want || (len(bad) > 0) != (text != "" && want.SchedIdle == 1) {
			t.Errorf("%s: %+v %v", text, got, messages(bad))
		}
	}
}

func TestThreshold(t *testing.T) {
	last, bad := ParseThreshold("", `{"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": 70, "cpuSuppressPolicy": "cpuset",
		"memoryEvictThresholdPercent": 70}}`, Cluster{})
	want := strategy.Suppress{Enable: true, Policy: strategy.SuppressCPUSet, ThresholdPercent: 70, MinPercent: 5}
	got := (Kubernetes{Threshold: last}).Node(strategy.DefaultNode(), nil).Colocation
	if len(bad) > 0 || got.Suppress != want || got.Enabled() {
		t.Errorf("%+v, %v; the bound alone changes no priority", got, messages(bad))
	}
	c, bad := ParseThreshold("o",
		`{"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": 170, "cpuSuppressMinPercent": 10, "cpuSuppressPolicy": "all"}}`, last)
	want.MinPercent = 10
	if got := (Kubernetes{Threshold: c}).Node(strategy.DefaultNode(), nil).Colocation.Suppress; got != want ||
		len(bad) != 2 {
		t.Errorf("%+v, %v", got, messages(bad))
	}
}
