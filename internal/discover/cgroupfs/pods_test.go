package cgroupfs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/config"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// The groups of the table. One letter stands for an engine's id.
func expand(text string) string {
	for _, c := range "abcdef" {
		text = strings.ReplaceAll(text, "<"+string(c)+">", strings.Repeat(string(c), 64))
	}
	return text
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		name    string
		groups  string
		include string
		want    string
	}{
		{"engines need no configuration",
			"/docker/<a> /kubepods/burstable/pod1/<b> /kubepods/burstable/pod1/<c> " +
				"/machine.slice/libpod-<d>.scope/container", "",
			"/kubepods/burstable/pod1: /kubepods/burstable/pod1/<b> /kubepods/burstable/pod1/<c>\n" +
				": /docker/<a>\n: /machine.slice/libpod-<d>.scope/container\n"},
		{"only crun's",
			"/machine.slice/libpod-<a>.scope/x /docker-<b>.scope/container /crio-<c>.scope/container/container", "",
			": /crio-<c>.scope/container\n: /docker-<b>.scope\n: /machine.slice/libpod-<a>.scope\n"},
		{"units and folders do", "/lab/a /system.slice/web.service /user.slice", "", ""},
		{"a folder", "/lab/a /lab/b /other/a", "/lab/*", ": /lab/a\n: /lab/b\n"},
		{"a folder of folders is their pod", "/lab/a /lab/b", "/lab /lab/*", "/lab: /lab/a /lab/b\n"},
		{"one that contains only others is not", "/lab/a/x", "/lab", ": /lab\n"},
		{"a pod is the nearest", "/lab/p/c /lab/p/d /lab/e", "/lab /lab/* /lab/*/*",
			"/lab: /lab/e\n/lab/p: /lab/p/c /lab/p/d\n"},
		{"a group that contains only pods is none", "/lab/p/c", "/lab /lab/* /lab/*/*", "/lab/p: /lab/p/c\n"},
		{"a gap between pod and container", "/lab/p/x/c", "/lab/p /lab/p/x/c", "/lab/p: /lab/p/x/c\n"},
		{"services and their slice", "/shop.slice/web.service /shop.slice/db.service /shop.slice/log.service",
			"/shop.slice /shop.slice/web.service /shop.slice/db.service",
			"/shop.slice: /shop.slice/db.service /shop.slice/web.service\n"},
		{"a service alone", "/system.slice/web.service /system.slice/db.service", "/system.slice/web.service",
			": /system.slice/web.service\n"},
		{"a slice with an engine's container", "/batch.slice/docker-<a>.scope", "/batch.slice",
			"/batch.slice: /batch.slice/docker-<a>.scope\n"},
		{"no glob reaches into a container", "/docker/<a>/docker/<b> /docker/<a>/x/y", "/docker/*/* /docker/*/*/*",
			": /docker/<a>\n"},
		{"nor into a machine", "/machine.slice/machine-vm.scope/payload", "/machine.slice/* /machine.slice/*/*",
			": /machine.slice/machine-vm.scope\n"},
		{"a pod without containers", "/kubepods/pod1", "/kubepods/*", ""},
		{"conmon is no container",
			"/kubepods/pod1/crio-<a> /kubepods/pod1/crio-conmon-<a>", "", "/kubepods/pod1: /kubepods/pod1/crio-<a>\n"},
		{"the root has no limit", "/lab", "/*", ": /lab\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scanner(t, newMemory(strings.Fields(expand(tt.groups))...),
				Options{Resolver: include(t, strings.Fields(tt.include)...)})
			got := strings.Split(outline(t, s), "\n")
			want := strings.Split(expand(tt.want), "\n")
			if diff := cmp.Diff(sortedLines(want), sortedLines(got)); diff != "" {
				t.Error(diff)
			}
			if !isSorted(t, s) {
				t.Errorf("not sorted by path:\n%s", outline(t, s))
			}
		})
	}
}

// TestGroupInAScope: of a scope and crun's group in it, the one that has the limit is the container, by whatever path
// the configuration names it. Where both have one the scope is its pod; in a pod, it goes with the container.
func TestGroupInAScope(t *testing.T) {
	scope := expand("/machine.slice/libpod-<a>.scope")
	m := newMemory(scope+"/container", scope+"/x")
	f, err := config.Parse("test", []byte("overrides:\n- {cgroup: "+scope+", policy: cpuBurstOnly}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := scanner(t, m, Options{Resolver: f})
	if n := len(s.nodes); n != 4 {
		t.Errorf("%d groups are scanned, want 4: the root, the slice, the scope and that one", n)
	}
	for _, c := range []struct {
		outer, inner int64
		pod, want    string
	}{
		{-1, -1, "", scope + "/container"},
		{-1, 50_000, "", scope + "/container"},
		{50_000, -1, "", scope},
		{50_000, 50_000, scope, scope + "/container"},
	} {
		m.limit(scope, c.outer, 100_000)
		m.limit(scope+"/container", c.inner, 100_000)
		if err := s.Rescan(); err != nil {
			t.Fatal(err)
		}
		pods, err := s.Pods()
		if err != nil || len(pods) != 1 || len(pods[0].Containers) != 1 {
			t.Fatalf("%+v: %+v, %v", c, pods, err)
		}
		got := pods[0].Containers[0]
		if pods[0].Path != c.pod || got.Path != c.want || got.Name != strings.Repeat("a", 12) ||
			got.Runtime != podman || got.Strategy.Policy != strategy.CPUBurstOnly {
			t.Errorf("%+v: %+v", c, pods[0])
		}
	}
	for _, pod := range []string{"/kubepods.slice/kubepods-pod1.slice",
		"/machine.slice/machine-libpod_pod_" + strings.Repeat("b", 64) + ".slice"} {
		scope := pod + expand("/crio-<c>.scope")
		m := newMemory(scope + "/container")
		m.limit(scope, 50_000, 100_000)
		m.limit(scope+"/container", 50_000, 100_000)
		s := scanner(t, m, Options{})
		if got := outline(t, s); got != pod+": "+scope+"/container\n" {
			t.Errorf("in a pod: %s", got)
		}
		for inner, want := range map[int64]string{50_000: scope, -1: ""} {
			m.limit(scope+"/container", inner, 100_000)
			if err := s.Rescan(); err != nil {
				t.Fatal(err)
			}
			if pods, err := s.Pods(); err != nil || pods[0].Containers[0].Scope.Path != want || want != "" &&
				pods[0].Containers[0].Scope.Inode == 0 {
				t.Errorf("in a pod, limit of the group in the scope %d: %+v, %v, want the scope %q", inner, pods[0],
					err, want)
			}
		}
		m.limit(scope, -1, 100_000)
		m.limit(scope+"/container", 50_000, 100_000)
		if err := s.Rescan(); err != nil {
			t.Fatal(err)
		}
		if pods, err := s.Pods(); err != nil || pods[0].Containers[0].Path != scope+"/container" ||
			pods[0].Containers[0].Scope.Path != "" {
			t.Errorf("in a pod, a limit of the group in the scope alone: %+v, %v", pods[0], err)
		}
	}
}

func sortedLines(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, l := range lines {
		set[l] = true
	}
	return set
}

func isSorted(t *testing.T, s *Scanner) bool {
	t.Helper()
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, p := range pods {
		at := p.Path
		if at == "" {
			at = p.Containers[0].Path
		}
		if at <= last {
			return false
		}
		last = at
		for i := range p.Containers[1:] {
			if p.Containers[i].Path >= p.Containers[i+1].Path {
				return false
			}
		}
	}
	return true
}

func TestPodsCarryTheConfiguration(t *testing.T) {
	f, err := config.Parse("test", []byte(`
strategy: {policy: auto}
overrides:
- {cgroup: /lab/a, policy: cpuBurstOnly, request: 0.5, class: LSR}
- {cgroup: /lab, request: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory("/lab/a")
	s := scanner(t, m, Options{Resolver: f})
	want := strategy.Default()
	want.Policy = strategy.CPUBurstOnly
	got, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]workload.Pod{{
		ID: workload.ID{Path: "/lab", Inode: m.groups["lab"]}, Name: "/lab", Request: 2,
		Containers: []workload.Container{{
			ID: workload.ID{Path: "/lab/a", Inode: m.groups["lab/a"]}, Name: "/lab/a", Runtime: "cgroup",
			Class: workload.ClassLSR, Request: 0.5, Strategy: want,
		}},
	}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamesWithoutAnEngine(t *testing.T) {
	uid := "0a1b2c3d-0000-4000-8000-000000000000"
	s := scanner(t, newMemory(expand("/docker/<a>"), "/system.slice/web.service", "/default/shop", "/lab/x",
		expand("/kubepods/pod"+uid+"/<b>")), Options{Resolver: include(t, "/system.slice/*", "/lab/*")})
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pods {
		for _, c := range p.Containers {
			got = append(got, p.Name+"|"+c.Name+"|"+c.Runtime)
		}
	}
	want := []string{"|shop|containerd", "|aaaaaaaaaaaa|docker", "pod " + uid + "|bbbbbbbbbbbb|containerd",
		"|/lab/x|cgroup", "|web.service|systemd"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestQuadlet: the configuration of a service applies to the container that Podman has put into the service's group.
func TestQuadlet(t *testing.T) {
	const service = "/system.slice/web.service"
	payload := service + expand("/libpod-payload-<a>")
	for cgroup, want := range map[string]struct {
		outline string
		policy  strategy.Policy
	}{
		"/lab":                    {": " + payload + "\n", strategy.None},
		service:                   {service + ": " + payload + "\n", strategy.Auto},
		service + "/libpod-payl*": {": " + payload + "\n", strategy.Auto},
	} {
		f, err := config.Parse("test", []byte("overrides: [{cgroup: "+cgroup+", policy: auto}]"))
		if err != nil {
			t.Fatal(err)
		}
		s := scanner(t, newMemory(payload, service+"/runtime"), Options{Resolver: f})
		if got := outline(t, s); got != want.outline {
			t.Errorf("%s: %s", cgroup, got)
		}
		if pods, _ := s.Pods(); pods[0].Containers[0].Strategy.Policy != want.policy {
			t.Errorf("%s: %+v", cgroup, pods[0])
		}
	}
}
