package config

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// askedFor is the request of a pod with this annotation; "" is none.
func askedFor(namespace, text string, p strategy.Patch) Asked {
	a := Asked{Namespace: namespace, Patch: p, ClassKey: ClassLabel}
	if text != "" {
		a.Key = Annotation
	}
	return a
}

func annotated(t *testing.T, namespace, text string) Asked {
	t.Helper()
	p, _, bad := ParseAnnotations("Pod a/b", map[string]string{Annotation: text}, strategy.Patch{})
	if bad != nil {
		t.Fatal(messages(bad))
	}
	return askedFor(namespace, text, p)
}

func tenants(t *testing.T, text string) Tenants {
	t.Helper()
	got, bad := ParseTenants("ConfigMap a/b", text, Tenants{})
	if bad != nil {
		t.Fatal(messages(bad))
	}
	return got
}

func bound(cpus float64) strategy.Bound { return strategy.Bound{Set: true, CPUs: cpus} }

func listed(list []Cut) []string {
	var texts []string
	for _, c := range list {
		texts = append(texts, c.String())
	}
	return texts
}

// TestAnnotationsAreCut: a number of an annotation counts up to its maximum, and where none is set, up to what
// the pod has without the annotation. A policy is never cut.
func TestAnnotationsAreCut(t *testing.T) {
	const platform = `{"annotationMaxima": [{"namespaces": ["platform"], "cfsQuotaBurstPercent": 1000, "cfsQuotaBurstPeriodSeconds": -1},
		{"namespaces": ["*"], "cpuBurstPercent": 100, "cfsQuotaBurstPercent": 200, "cfsQuotaBurstPeriodSeconds": 60}]}`
	const without, maxima = "what the pod has without its annotation", "annotationMaxima"
	type want struct {
		policy                                     strategy.Policy
		burst, quota, seconds, startup, startupCap int64
	}
	for _, c := range []struct {
		name, tenants, namespace, text string
		node                           func(*strategy.Strategy)
		want                           want
		cut                            []string
	}{
		{"the documented defaults, where nothing is said", "", "web",
			`{"policy": "auto", "cpuBurstPercent": 5000, "cfsQuotaBurstPercent": 900, "cfsQuotaBurstPeriodSeconds": -1, "startupSeconds": 600, "startupBurstPercent": 900}`, nil,
			want{strategy.Auto, 1000, 300, -1, 60, 300}, []string{"cpuBurstPercent: 5000 asked, 1000 given: " + without,
				"cfsQuotaBurstPercent: 900 asked, 300 given: " + without,
				"startupSeconds: 600 asked, 60 given: " + without,
				"startupBurstPercent: 900 asked, 300 given: " + without}},
		{"the documented values pass", "", "web",
			`{"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1, "startupSeconds": 60, "startupBurstPercent": 300}`, nil,
			want{strategy.Auto, 1000, 300, -1, 60, 300}, nil},
		{"lowering is free", "", "web",
			`{"policy": "auto", "cpuBurstPercent": 0, "cfsQuotaBurstPercent": 100, "cfsQuotaBurstPeriodSeconds": 5, "startupSeconds": 0, "startupBurstPercent": 100}`, nil,
			want{strategy.Auto, 0, 100, 5, 0, 100}, nil},
		{"the cluster's are less", "", "web",
			`{"policy": "auto", "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1}`,
			func(s *strategy.Strategy) { s.CFSQuotaBurstPercent, s.CFSQuotaBurstPeriodSeconds = 150, 30 },
			want{strategy.Auto, 1000, 150, 30, 60, 0}, []string{"cfsQuotaBurstPercent: 300 asked, 150 given: " +
				without, "cfsQuotaBurstPeriodSeconds: -1 asked, 30 given: " + without}},
		{"the cluster's are more", "", "web", `{"policy": "auto", "cfsQuotaBurstPercent": 400}`,
			func(s *strategy.Strategy) { s.CFSQuotaBurstPercent = 500 },
			want{strategy.Auto, 1000, 400, -1, 60, 0}, nil},
		{"a start may have what the administrator gives to starts", "", "web",
			`{"policy": "auto", "startupBurstPercent": 900}`,
			func(s *strategy.Strategy) { s.StartupBurstPercent = 400 },
			want{strategy.Auto, 1000, 300, -1, 60, 400}, []string{"startupBurstPercent: 900 asked, 400 given: " +
				without}},
		{"maxima below the cluster's, without a word where nothing was named", platform, "web", `{"policy": "auto"}`,
			nil,
			want{strategy.Auto, 100, 200, 60, 60, 0}, nil},
		{"maxima", platform, "web", `{"policy": "auto", "cfsQuotaBurstPercent": 250, "startupBurstPercent": 250}`, nil,
			want{strategy.Auto, 100, 200, 60, 60, 200}, []string{"cfsQuotaBurstPercent: 250 asked, 200 given: " +
				maxima, "startupBurstPercent: 250 asked, 200 given: " + maxima}},
		{"a namespace that is allowed more, of one number by a later entry", platform, "platform",
			`{"policy": "auto", "cfsQuotaBurstPercent": 900, "cfsQuotaBurstPeriodSeconds": -1, "cpuBurstPercent": 900}`,
			nil,
			want{strategy.Auto, 100, 900, -1, 60, 0}, []string{"cpuBurstPercent: 900 asked, 100 given: " + maxima}},
		{"-1 is above any number", platform, "web", `{"policy": "cfsQuotaBurstOnly", "cfsQuotaBurstPeriodSeconds": -1}`,
			nil,
			want{strategy.CFSQuotaBurstOnly, 100, 200, 60, 60, 0},
			[]string{"cfsQuotaBurstPeriodSeconds: -1 asked, 60 given: " + maxima}},
		{"the policy is never cut", platform, "web", `{"policy": "none"}`,
			func(s *strategy.Strategy) { s.Policy = strategy.Auto },
			want{strategy.None, 100, 200, 60, 60, 0}, nil},
		{"who has no annotation has what the administrator gives", platform, "web", "",
			func(s *strategy.Strategy) { s.CFSQuotaBurstPercent = 500 },
			want{strategy.None, 1000, 500, -1, 60, 0}, nil},
	} {
		node := strategy.Default()
		if c.node != nil {
			c.node(&node)
		}
		g := Kubernetes{Tenants: tenants(t, c.tenants)}.Pod("Pod a/b", node, annotated(t, c.namespace, c.text))
		s := g.Strategy
		if got := (want{s.Policy, s.CPUBurstPercent, s.CFSQuotaBurstPercent, s.CFSQuotaBurstPeriodSeconds,
			s.StartupSeconds, s.StartupBurstPercent}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		for i := range c.cut {
			c.cut[i] = "Pod a/b: koordinator.sh/cpuBurst: " + c.cut[i]
		}
		if diff := cmp.Diff(c.cut, listed(g.Cuts)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// TestReserved: exclusive CPUs, and the classes that take some, a pod has only where its namespace is on the list.
// BE takes nothing, and neither does a pod that wants none.
func TestReserved(t *testing.T) {
	refused := func(key, asked, given string) string {
		return fmt.Sprintf("Pod a/b: %s: %s asked, %s given: the namespace is not in exclusiveNamespaces", key, asked,
			given)
	}
	lsr, lse := refused(ClassLabel, "LSR", "LS without burst"), refused(ClassLabel, "LSE", "LS without burst")
	for _, c := range []struct {
		list      string
		class     workload.Class
		exclusive workload.Exclusive
		want      Given
		cut       []string
	}{
		{"", workload.ClassLSR, "", Given{Class: workload.ClassLS, Strategy: strategy.Strategy{Policy: strategy.None}},
			[]string{lsr}},
		{"", workload.ClassLSE, "", Given{Class: workload.ClassLS, Strategy: strategy.Strategy{Policy: strategy.None}},
			[]string{lse}},
		{"", workload.ClassBE, "", Given{Class: workload.ClassBE}, nil},
		{"", workload.ClassLS, "", Given{Class: workload.ClassLS}, nil},
		{"", "", workload.ExclusiveYes, Given{}, []string{refused(ExclusiveAnnotation, "true", "no exclusive CPUs")}},
		{"", "", workload.ExclusiveStrict, Given{},
			[]string{refused(ExclusiveAnnotation, "strict", "no exclusive CPUs")}},
		{"", "", workload.ExclusiveNo, Given{Exclusive: workload.ExclusiveNo}, nil},
		{"", workload.ClassLSR, workload.ExclusiveNo,
			Given{Class: workload.ClassLS, Exclusive: workload.ExclusiveNo,
				Strategy: strategy.Strategy{Policy: strategy.None}}, []string{lsr}},
		{`["other"]`, workload.ClassLSR, "", Given{Class: workload.ClassLS,
			Strategy: strategy.Strategy{Policy: strategy.None}}, []string{lsr}},
		{`["other", "web"]`, workload.ClassLSR, workload.ExclusiveYes,
			Given{Class: workload.ClassLSR, Exclusive: workload.ExclusiveYes}, nil},
		{`["*"]`, workload.ClassLSE, workload.ExclusiveStrict,
			Given{Class: workload.ClassLSE, Exclusive: workload.ExclusiveStrict}, nil},
	} {
		k := Kubernetes{}
		if c.list != "" {
			k.Tenants = tenants(t, `{"exclusiveNamespaces": `+c.list+`}`)
		}
		if c.want.Strategy.Policy == "" {
			c.want.Strategy.Policy = strategy.Auto
		}
		g := k.Pod("Pod a/b", strategy.Strategy{Policy: strategy.Auto},
			Asked{Namespace: "web", ClassKey: ClassLabel, Class: c.class, Exclusive: c.exclusive})
		cut := listed(g.Cuts)
		g.Cuts = nil
		if diff := cmp.Diff(c.want, g); diff != "" {
			t.Errorf("%+v: -want +got\n%s", c, diff)
		}
		if diff := cmp.Diff(c.cut, cut); diff != "" {
			t.Errorf("%+v: -want +got\n%s", c, diff)
		}
	}
}

// TestOnlyInitContainersAreLimited: such a pod has no burst, whoever asks for one.
func TestOnlyInitContainersAreLimited(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		`{"policy": "none"}`: nil,
		`{"policy": "auto"}`: {"Pod a/b: koordinator.sh/cpuBurst: policy: auto asked, none given: neither the pod " +
			"nor one of its main containers has a limit"},
	} {
		asked := annotated(t, "web", text)
		asked.InitOnly = true
		g := Kubernetes{}.Pod("Pod a/b", auto(), asked)
		if diff := cmp.Diff(want, listed(g.Cuts)); diff != "" || g.Strategy.Policy != strategy.None {
			t.Errorf("%q: policy %s; -want +got\n%s", text, g.Strategy.Policy, diff)
		}
	}
}

// TestTenantsOfTheFile: a file says what a ConfigMap may say, and the ConfigMap counts where both do.
func TestTenantsOfTheFile(t *testing.T) {
	f := mustParse(t, `
tenants:
  extraCoresPerPod: 500m
  extraCoresPerNode: 16
  exclusiveNamespaces: [trading]
  annotationMaxima:
    - {namespaces: [platform], cfsQuotaBurstPercent: 1000}
    - {namespaces: ["*"], cfsQuotaBurstPercent: 250, startupSeconds: 90}
`)
	if got, want := f.Node().Extra, (strategy.ExtraCores{PerPod: bound(0.5), PerNode: bound(16)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	k := Kubernetes{Own: f.Tenants()}
	given := func(namespace, text string) strategy.Strategy {
		return k.Pod("o", f.Node().Strategy, annotated(t, namespace, text)).Strategy
	}
	const much = `{"policy": "auto", "cfsQuotaBurstPercent": 5000, "startupSeconds": 600}`
	if web, platform := given("web", much), given("platform", much); web.CFSQuotaBurstPercent != 250 ||
		platform.CFSQuotaBurstPercent != 1000 || web.StartupSeconds != 90 {
		t.Errorf("web %+v, platform %+v", web, platform)
	}
	k.Tenants = tenants(t,
		`{"extraCoresPerNode": 4, "exclusiveNamespaces": [], "annotationMaxima": [{"namespaces": ["*"], "cfsQuotaBurstPercent": 400}]}`)
	if web := given("platform", much); web.CFSQuotaBurstPercent != 400 || web.StartupSeconds != 90 {
		t.Errorf("%+v", web)
	}
	if got, want := k.Node(f.Node(), nil).Extra, (strategy.ExtraCores{PerPod: bound(0.5),
		PerNode: bound(4)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if g := k.Pod("o", auto(), Asked{Namespace: "trading", Class: workload.ClassLSR}); g.Class == workload.ClassLSR {
		t.Error("the ConfigMap's empty list does not replace the file's")
	}
}

// TestParseTenantsKeepsWhatWasGood, and refuses what could be a bound that does not hold.
func TestParseTenantsKeepsWhatWasGood(t *testing.T) {
	const good = `{"extraCoresPerPod": 1.5, "extraCoresPerNamespace": 2, "exclusiveNamespaces": ["a"], "annotationMaxima": [{"namespaces": ["a"], "cpuBurstPercent": 10}]}`
	last := tenants(t, good)
	got, bad := ParseTenants("o", `{"extraCoresPerPod": -1, "extraCoresPerNamespace": "2", "extraCoresPerNod": 3, "exclusiveNamespaces": "x",
		"annotationMaxima": [{"namespaces": ["b"], "cpuBurstPercent": 20}, {"cfsQuotaBurstPercent": 99, "cpuBurst": 1}]}`, last)
	if diff := cmp.Diff(last, got, cmp.AllowUnexported(Tenants{}, maximum{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"o: plimsoll-tenants: extraCoresPerPod: -1 is outside 0..8192",
		`o: plimsoll-tenants: extraCoresPerNamespace: must be a number, not "2" (remove the quotes)`,
		"o: plimsoll-tenants: extraCoresPerNod: unknown field (did you mean extraCoresPerPod?)",
		`o: plimsoll-tenants: exclusiveNamespaces: must be a list [...], not "x"`,
		"o: plimsoll-tenants: annotationMaxima[1].cpuBurst: unknown field",
		"o: plimsoll-tenants: annotationMaxima[1].cfsQuotaBurstPercent: 99 is outside 100..10000",
		`o: plimsoll-tenants: annotationMaxima[1].namespaces: missing (such as ["platform"], or ["*"] for every namespace)`,
	}, messages(bad)); diff != "" {
		t.Error(diff)
	}
	if got, _ := ParseTenants("o", "[", last); !got.Extra.PerPod.Set {
		t.Error("no JSON, and the last value is lost")
	}
	for text, want := range map[string]strategy.ExtraCores{
		`{"extraCoresPerNod": 16, "extracoresperpod": 4}`: {PerPod: bound(4), PerNamespace: bound(0), PerNode: bound(0)},
		`{"extraCoresPerNode": 16, "maxCores": 4}`:        {PerNode: bound(16)},
		`{"extraCoresPerNode": "16"}`:                     {PerNode: bound(0)},
		"16":                                              NoExtraCores().Extra,
	} {
		if got, bad := ParseTenants("o", text, NoExtraCores()); got.Extra != want || bad == nil {
			t.Errorf("%s, and nothing good was known: %+v, want %+v; %q", text, got.Extra, want, messages(bad))
		}
	}
	if got, _ := ParseTenants("o", `{"extraCoresPerPdo": 3}`, last); got.Extra != last.Extra {
		t.Errorf("a typing error in its name, and the bound is %+v", got.Extra)
	}
	if got, _ := ParseTenants("o", "", last); got.Extra.Bounded() {
		t.Error("nothing is said any more, and the last value stays")
	}
	if got := tenants(t, `{"extraCoresPerPod": null}`); got.Extra.Bounded() {
		t.Error("null is a bound")
	}
	_, err := Parse("f", []byte("tenants:\n  annotationMaxima:\n    - cpuBurstPercent: 7\n"))
	if err == nil ||
		err.Error() != `f:3: tenants.annotationMaxima[0].namespaces: missing (such as ["platform"], or ["*"] for every namespace)` {
		t.Error(err)
	}
}
