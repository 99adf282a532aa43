package cgroupfs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

func limited(quota, period time.Duration) cpu.Bandwidth {
	return cpu.Bandwidth{Quota: quota, Period: period}
}

const ms = time.Millisecond

func TestParseLimits(t *testing.T) {
	none := limited(cpu.Unlimited, 100*ms)
	for _, tt := range []struct {
		name  string
		parse func([]byte) (cpu.Bandwidth, error)
		text  string
		want  cpu.Bandwidth
		bad   bool
	}{
		{"docker --cpus", parseHostConfig, `{"NanoCpus":500000000,"CpuQuota":0,"CpuPeriod":0,"Binds":null}`,
			limited(50*ms, 100*ms), false},
		{"docker --cpu-quota", parseHostConfig, `{"NanoCpus":0,"CpuQuota":30000,"CpuPeriod":50000}`,
			limited(30*ms, 50*ms), false},
		{"docker --cpu-quota alone", parseHostConfig, `{"CpuQuota":30000}`, limited(30*ms, 100*ms), false},
		{"docker without a limit", parseHostConfig, `{"CpuQuota":-1}`, none, false},
		{"docker, nothing at all", parseHostConfig, `null`, cpu.Bandwidth{}, true},
		{"docker, half a file", parseHostConfig, `{"NanoCpus":5`, cpu.Bandwidth{}, true},
		{"docker, too much", parseHostConfig, `{"NanoCpus":9223372036854775807}`, cpu.Bandwidth{}, true},
		{"docker, a negative period", parseHostConfig, `{"CpuQuota":1000,"CpuPeriod":-5}`, cpu.Bandwidth{}, true},
		{"runc", parseRuncState,
			`{"id":"a","config":{"cgroups":{"path":"/docker/a","cpu_quota":50000,"cpu_period":100000}}}`,
			limited(50*ms, 100*ms), false},
		{"runc with a burst", parseRuncState,
			`{"config":{"cgroups":{"cpu_quota":50000,"cpu_period":100000,"cpu_burst":20000}}}`,
			cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 20 * ms}, false},
		{"runc with no burst", parseRuncState,
			`{"config":{"cgroups":{"cpu_quota":-1,"cpu_period":0,"cpu_burst":null}}}`, none, false},
		{"runc, unified", parseRuncState, `{"config":{"cgroups":{"cpu_quota":0,"unified":{"cpu.max":"1000 10000"}}}}`,
			cpu.Bandwidth{}, true},
		{"runc, unified memory", parseRuncState,
			`{"config":{"cgroups":{"cpu_quota":5000,"unified":{"memory.high":"1"}}}}`, limited(5*ms, 100*ms), false},
		{"runc, another layout", parseRuncState, `{"config":{}}`, cpu.Bandwidth{}, true},
		{"runc, not JSON", parseRuncState, `x`, cpu.Bandwidth{}, true},
	} {
		got, err := tt.parse([]byte(tt.text))
		if (err != nil) != tt.bad || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v, error %v", tt.name, got, err, tt.want, tt.bad)
		}
	}
}

func TestParseSpec(t *testing.T) {
	for _, tt := range []struct {
		name, text     string
		container, pod string
	}{
		{"containerd", `{"annotations":{"io.kubernetes.cri.container-name":"nginx","io.kubernetes.cri.container-type":"container",
			"io.kubernetes.cri.sandbox-name":"web-1","io.kubernetes.cri.sandbox-namespace":"shop"},
			"linux":{"resources":{"cpu":{"shares":102,"quota":50000,"period":100000}}}}`, "shop/web-1/nginx", "shop/web-1"},
		{"containerd's sandbox", `{"annotations":{"io.kubernetes.cri.container-type":"sandbox",
			"io.kubernetes.cri.sandbox-name":"web-1","io.kubernetes.cri.sandbox-namespace":"shop"}}`, "shop/web-1/pause",
			"shop/web-1"},
		{"CRI-O", `{"annotations":{"io.container.manager":"cri-o","io.kubernetes.container.name":"api","io.kubernetes.pod.name":"p",
			"io.kubernetes.pod.namespace":"ns"}}`, "ns/p/api", "ns/p"},
		{"CRI-O's sandbox", `{"annotations":{"io.kubernetes.container.name":"POD","io.kubernetes.pod.name":"p",
			"io.kubernetes.pod.namespace":"ns"}}`, "ns/p/pause", "ns/p"},
		{"nerdctl", `{"annotations":{"nerdctl/name":"db"}}`, "db", ""},
		{"no names", `{"annotations":{"io.kubernetes.cri.container-name":"x"}}`, "", ""},
	} {
		s, err := parseSpec([]byte(tt.text))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if c, p := s.names(); c != tt.container || p != tt.pod {
			t.Errorf("%s: %q in %q", tt.name, c, p)
		}
		if s.sandbox() != strings.HasSuffix(tt.name, "sandbox") {
			t.Errorf("%s: a sandbox: %v", tt.name, s.sandbox())
		}
	}
	if _, err := parseSpec([]byte(`{"annotations":[]}`)); err == nil {
		t.Error("annotations that are a list passed")
	}
}

func TestParseStorage(t *testing.T) {
	got, err := parseStorage([]byte(`[{"id":"a","names":["web"],"image":"i"},{"id":"b"},{"id":"c","names":["x","y"]}]`))
	if diff := cmp.Diff(map[string]string{"a": "web", "c": "x"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := parseStorage([]byte(`{}`)); err == nil {
		t.Error("an object passed for a list")
	}
}

// FuzzEngineFiles: no file makes a reader panic, and a limit that is accepted is one that a kernel could have.
func FuzzEngineFiles(f *testing.F) {
	for _, text := range []string{`{"NanoCpus":500000000}`, `{"CpuQuota":-1,"CpuPeriod":9223372036854775807}`, `null`,
		`[]`,
		`{"config":{"cgroups":{"cpu_quota":50000,"cpu_burst":-3}}}`, `{"linux":{"resources":{"cpu":{"quota":1,"period":2}}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(b cpu.Bandwidth, ok bool) {
			if ok != (b.Period > 0) || ok && (b.Quota <= 0 || b.Burst < 0) {
				t.Errorf("%q: %+v, %v", data, b, ok)
			}
		}
		b, err := parseHostConfig(data)
		check(b, err == nil)
		b, err = parseRuncState(data)
		check(b, err == nil)
		if s, err := parseSpec(data); err == nil {
			s.names()
		}
		parseStorage(data)
		parseDockerName(data)
	})
}
