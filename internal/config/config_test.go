package config

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const example = `# what all containers get
strategy:
  policy: auto
  cpuBurstPercent: 800
overrides:
  - {cgroup: "/lab/*", policy: cpuBurstOnly, request: 500m}
  - cgroup: /lab/batch
    class: BE
    cfsQuotaBurstPercent: 200
  - cgroup: "/lab/[ab]*"
    policy: none
    request: 1.5
include:
  - /plain/?
`

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestResolve(t *testing.T) {
	f := mustParse(t, example)
	node := strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 800, CFSQuotaBurstPercent: 300,
		CFSQuotaBurstPeriodSeconds: -1, StartupSeconds: 60, SharePoolThresholdPercent: 50}
	with := func(edit func(*strategy.Strategy)) strategy.Strategy { s := node; edit(&s); return s }
	burstOnly := with(func(s *strategy.Strategy) { s.Policy = strategy.CPUBurstOnly })
	none := with(func(s *strategy.Strategy) { s.Policy = strategy.None })
	for _, c := range []struct {
		group string
		want  Effective
	}{
		{"/", Effective{Strategy: node}},
		{"/kubepods/pod1/c1", Effective{Strategy: node}},
		{"/lab", Effective{Strategy: node}},
		{"/lab/web", Effective{Strategy: burstOnly, Request: 0.5, Matched: true}},
		{"/lab/web/inner", Effective{Strategy: node}}, // * does not cross /
		{"/lab/app", Effective{Strategy: none, Request: 1.5, Matched: true}},
		{"/lab/batch", Effective{Strategy: with(func(s *strategy.Strategy) {
			s.Policy, s.CFSQuotaBurstPercent = strategy.None, 200
		}), Request: 1.5, Class: workload.ClassBE, Matched: true}}, // three entries, field by field
		{"/plain/x", Effective{Strategy: node, Matched: true}},
		{"/plain/xy", Effective{Strategy: node}},
	} {
		if diff := cmp.Diff(c.want, f.Resolve(c.group)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.group, diff)
		}
	}
	if diff := cmp.Diff(strategy.Node{Strategy: node}, f.Node()); diff != "" {
		t.Errorf("the node: -want +got\n%s", diff)
	}
}

// The last match wins for the fields that it names, whatever the fields' order inside an entry.
func TestLastMatchWins(t *testing.T) {
	for _, c := range []struct {
		overrides string
		want      strategy.Policy
	}{
		{`[{cgroup: /a, policy: auto}, {cgroup: /*, policy: none}]`, strategy.None},
		{`[{policy: none, cgroup: /*}, {policy: auto, cgroup: /a}]`, strategy.Auto},
		{`[{cgroup: /a, policy: auto}, {cgroup: /*, cpuBurstPercent: 100}]`, strategy.Auto},
	} {
		f := mustParse(t, "overrides: "+c.overrides+"\n")
		if got := f.Resolve("/a").Strategy.Policy; got != c.want {
			t.Errorf("%s: policy %s, want %s", c.overrides, got, c.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "strategy:\noverrides:\ninclude:\n", "{}\n",
		"strategy: {}\n", "overrides: []\n", "%YAML 1.2\n---\nstrategy:\n", "\ufeffstrategy:\n"} {
		f := mustParse(t, text)
		if diff := cmp.Diff(Effective{Strategy: strategy.Default()}, f.Resolve("/any")); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
	}
	if diff := cmp.Diff(Effective{Strategy: strategy.Default()}, new(File).Resolve("/any")); diff != "" {
		t.Errorf("zero File: -want +got\n%s", diff)
	}
}

// The ends of each range are inside it.
func TestBounds(t *testing.T) {
	for field, ends := range map[string][2]int64{
		"cpuBurstPercent":            {0, 10000},
		"cfsQuotaBurstPercent":       {100, 10000},
		"cfsQuotaBurstPeriodSeconds": {-1, 365 * 24 * 3600},
		"sharePoolThresholdPercent":  {0, 100},
	} {
		for _, v := range ends {
			mustParse(t, fmt.Sprintf("strategy: {%s: %d}\n", field, v))
		}
		for _, v := range []int64{ends[0] - 1, ends[1] + 1} {
			_, err := Parse("c", fmt.Appendf(nil, "strategy:\n  %s: %d\n", field, v))
			want := fmt.Sprintf("c:2: strategy.%s: %d is outside %d..%d", field, v, ends[0], ends[1])
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

func TestRequest(t *testing.T) {
	for text, want := range map[string]float64{
		"2": 2, "0.25": 0.25, `"0.25"`: 0.25, "250m": 0.25, `"1500m"`: 1.5, "0": 2.0 / 1024, "8192": 8192, ".5": 0.5,
	} {
		f := mustParse(t, "overrides: [{cgroup: /a, request: "+text+"}]\n")
		if got := f.Resolve("/a").Request; got != want {
			t.Errorf("request %s: %v, want %v", text, got, want)
		}
	}
}

func TestFromFlags(t *testing.T) {
	f, err := FromFlags("auto", []string{"/lab/*"})
	if err != nil {
		t.Fatal(err)
	}
	want := strategy.Default()
	want.Policy = strategy.Auto
	if diff := cmp.Diff(Effective{Strategy: want, Matched: true}, f.Resolve("/lab/a")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if f.Resolve("/lab/a/b").Matched {
		t.Error("/lab/a/b must not match /lab/*")
	}
	empty, err := FromFlags("", nil)
	if err != nil || empty.Node() != strategy.DefaultNode() {
		t.Errorf("no flags: %+v, %v", empty, err)
	}
	for _, c := range []struct {
		policy, include, want string
	}{
		{"Auto", "/a",
			`--policy: "Auto" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto (did you mean auto?)`},
		{"auto", "lab/*", `--include: "lab/*" does not begin with / (write "/lab/*")`},
	} {
		f, err := FromFlags(c.policy, []string{c.include})
		if f != nil || err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// format spells a File as YAML. A quoted key and value are read like plain ones.
func format(f *File) string {
	var b strings.Builder
	b.WriteString("strategy:\n" + formatPatch(f.strategy.Patch, "  "))
	if v := f.strategy.SharePoolThresholdPercent; v != nil {
		fmt.Fprintf(&b, "  sharePoolThresholdPercent: %d\n", *v)
	}
	if v := f.strategy.LoadLinePercent; v != nil {
		fmt.Fprintf(&b, "  loadLinePercent: %v\n", *v)
	}
	b.WriteString("overrides:\n")
	for _, o := range f.overrides {
		fmt.Fprintf(&b, "  - cgroup: %q\n", o.cgroup)
		if o.request != nil {
			fmt.Fprintf(&b, "    request: %g\n", *o.request)
		}
		if o.class != nil {
			fmt.Fprintf(&b, "    class: %s\n", *o.class)
		}
		b.WriteString(formatPatch(o.strategy, "    "))
	}
	return b.String()
}

func formatPatch(p strategy.Patch, indent string) string {
	var b strings.Builder
	if p.Policy != nil {
		fmt.Fprintf(&b, "%spolicy: %s\n", indent, *p.Policy)
	}
	for _, f := range []struct {
		name  string
		value *int64
	}{
		{"cpuBurstPercent", p.CPUBurstPercent},
		{"cfsQuotaBurstPercent", p.CFSQuotaBurstPercent},
		{"cfsQuotaBurstPeriodSeconds", p.CFSQuotaBurstPeriodSeconds},
		{"startupSeconds", p.StartupSeconds},
		{"startupBurstPercent", p.StartupBurstPercent},
	} {
		if f.value != nil {
			fmt.Fprintf(&b, "%s%s: %d\n", indent, f.name, *f.value)
		}
	}
	return b.String()
}

// maybe is a pointer to one of the values, or nil.
func maybe[T any](r *rand.Rand, values ...T) *T {
	if i := r.IntN(len(values) + 1); i < len(values) {
		return &values[i]
	}
	return nil
}

func randomPatch(r *rand.Rand) strategy.Patch {
	return strategy.Patch{
		Policy: maybe(r, strategy.None, strategy.CPUBurstOnly, strategy.CFSQuotaBurstOnly,
			strategy.Auto),
		CPUBurstPercent:            maybe(r, r.Int64N(10001)),
		CFSQuotaBurstPercent:       maybe(r, 100+r.Int64N(9901)),
		CFSQuotaBurstPeriodSeconds: maybe(r, r.Int64N(1000)-1),
		StartupSeconds:             maybe(r, r.Int64N(601)),
		StartupBurstPercent:        maybe(r, 100+r.Int64N(9901)),
	}
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		want := &File{strategy: strategy.NodePatch{Patch: randomPatch(r)}}
		want.strategy.SharePoolThresholdPercent = maybe(r, r.Int64N(101))
		for range r.IntN(4) {
			want.overrides = append(want.overrides, override{
				cgroup:   []string{"/a", "/a/*", "/[a-c]?/x", `/system.slice/a\*b.service`, "/ü b"}[r.IntN(5)],
				strategy: randomPatch(r),
				request:  maybe(r, float64(r.IntN(64000))/1000),
				class:    maybe(r, workload.ClassLSE, workload.ClassLSR, workload.ClassLS, workload.ClassBE),
			})
		}
		text := format(want)
		got := mustParse(t, text)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(File{}, override{}, Tenants{})); diff != "" {
			t.Fatalf("seed %d:\n%s-want +got\n%s", seed, text, diff)
		}
	}
}

func TestErrorType(t *testing.T) {
	_, err := Parse("/etc/plimsoll/config.yaml", []byte("strategy:\n  polcy: auto\n"))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an *Error", err)
	}
	want := &Error{File: "/etc/plimsoll/config.yaml", Line: 2, Field: "strategy.polcy", Msg: "unknown field",
		Hint: "did you mean policy?"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestColocation(t *testing.T) {
	f := mustParse(t, `
colocation:
  enable: true
  mechanism: idle
  slice: 3ms
  kubeQOS: true
  beClass: {cpuQOS: {schedIdle: 1}}
  suppress: {enable: true, cpuSuppressPolicy: cpuset, cpuSuppressThresholdPercent: 70}
  schedExt: {floorPercent: 0.5}
  systemClass: {cpuQOS: {enable: false, groupIdentity: -2}}
overrides:
  - {cgroup: "/lab/batch", class: BE}
`)
	got := f.Node().Colocation
	want := strategy.Colocation{Mechanism: strategy.MechanismIdle, Slice: 3 * time.Millisecond, KubeQOS: true,
		LSR:      strategy.CPUQOS{Enable: true, GroupIdentity: 2, CoreExpeller: true},
		LS:       strategy.CPUQOS{Enable: true, GroupIdentity: 2, CoreExpeller: true},
		BE:       strategy.CPUQOS{Enable: true, GroupIdentity: -1, SchedIdle: 1},
		System:   strategy.CPUQOS{GroupIdentity: -2},
		Suppress: strategy.Suppress{Enable: true, Policy: strategy.SuppressCPUSet, ThresholdPercent: 70, MinPercent: 5},
		SchedExt: strategy.SchedExt{FloorPercent: 0.5, WatchdogSeconds: 20},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, text := range []string{"experimental: true\ncolocation: {mechanism: schedExt}",
		"colocation: {mechanism: schedExt}\nexperimental: true"} {
		if got := mustParse(t, text).Node().Colocation.Mechanism; got != strategy.MechanismSchedExt {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := mustParse(t, "strategy: {policy: auto}").Node().Colocation; got.Enabled() {
		t.Errorf("asked for nothing, got %+v", got)
	}
	for text, want := range map[string]string{
		"colocation: {mechanism: idel}": `"idel" is not one of auto, groupIdentity, idle, weight, slice, coreSched, schedExt, none (did you mean idle?)`,
		"colocation:\n  enable: true\n  mechanism: schedExt": "c.yaml:3: colocation.mechanism: schedExt is " +
			"experimental (write experimental: true",
		"experimental: false\ncolocation: {mechanism: schedExt}": "c.yaml:2: colocation.mechanism: schedExt is " +
			"experimental",
		"experimental: yes please":                              "must be true or false",
		"colocation: {experimental: true, mechanism: schedExt}": "unknown field",
		"colocation: {slice: 3}":                                "must be",
		"colocation: {slice: 3 ms}":                             `"3 ms" is not a time`,
		"colocation: {slice: 99us}":                             "99µs is outside 100µs..100ms",
		"colocation: {suppress: {cpuSuppressPolicy: cfsquota}}": `"cfsquota" is not one of cfsQuota, cpuset`,
		"colocation: {suppress: {cpuSuppressThresholdPercent: 101}}": "cpuSuppressThresholdPercent: 101 is outside " +
			"0..100",
		"colocation: {schedExt: {floorPercent: 60}}":    "colocation.schedExt.floorPercent: 60 is outside 0.1..50",
		"colocation: {schedExt: {floorPercent: .nan}}":  "floorPercent",
		"colocation: {schedExt: {watchdogSeconds: 31}}": "colocation.schedExt.watchdogSeconds: 31 is outside 4..30",
		"colocation: {enable: 1}":                       "must be true or false, not 1",
		"colocation: {lsClass: {cpuQOS: {groupIdentity: 3}}}": "colocation.lsClass.cpuQOS.groupIdentity: 3 " +
			"is outside -2..2",
		"colocation: {beClass: {cpuQOS: {schedIdle: 2}}}":          "2 is neither 0 nor 1",
		"colocation: {beClass: {cpuQoS: {schedIdle: 1}}}":          "unknown field (did you mean cpuQOS?)",
		"overrides:\n  - {cgroup: /a, class: BE, mechanism: idle}": "unknown field",
	} {
		if _, err := Parse("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestUnmatched(t *testing.T) {
	f := mustParse(t, "overrides: [{cgroup: /a/*}, {cgroup: /b}, {cgroup: /b}]\ninclude: [/c/d, /a/*]\n")
	if diff := cmp.Diff([]string{"/b"}, f.Unmatched([]string{"/a/x", "/b/x", "/c/d"})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := f.Unmatched(nil); len(got) != 3 {
		t.Errorf("of nothing: %v", got)
	}
	if got := new(File).Unmatched([]string{"/a"}); got != nil {
		t.Errorf("without globs: %v", got)
	}
}
