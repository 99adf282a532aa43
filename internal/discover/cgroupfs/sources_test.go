package cgroupfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// host is a root directory with the files of engines.
type host struct {
	t    *testing.T
	root string
	time time.Time
}

func newHost(t *testing.T) *host { return &host{t: t, root: t.TempDir(), time: time.Unix(1000, 0)} }

// put writes a file as the engines do: a new one, with a time of its own.
func (h *host) put(name, text string) {
	h.t.Helper()
	file := filepath.Join(h.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file+".tmp", []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	h.time = h.time.Add(time.Second)
	if err := os.Chtimes(file+".tmp", h.time, h.time); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) remove(name string) {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.root, name)); err != nil {
		h.t.Fatal(err)
	}
}

var anID = strings.Repeat("a", 64)

func (h *host) lookUp(now cpu.Bandwidth, old facts) facts {
	return HostSources(h.root).lookUp(Classify("/kubepods/pod1/"+anID), "/kubepods/pod1/"+anID, now, old)
}

func (h *host) expect(f facts, name, runtime, source string, quota time.Duration) {
	h.t.Helper()
	var d workload.Declared
	if f.declared != nil {
		d = *f.declared
	}
	if f.name != name || f.runtime != runtime || d.Source != source || d.Bandwidth.Quota != quota {
		h.t.Errorf("%q of %q, %+v; want %q of %q, %q %v", f.name, f.runtime, d, name, runtime, source, quota)
	}
}

const (
	hostConfig = "var/lib/docker/containers/"
	runcState  = "run/containerd/runc/k8s.io/"
	bundleDir  = "run/containerd/io.containerd.runtime.v2.task/k8s.io/"
	annotated  = `{"annotations":{"io.kubernetes.cri.container-name":"c","io.kubernetes.cri.sandbox-name":"p","io.kubernetes.cri.sandbox-namespace":"n"},
		"linux":{"resources":{"cpu":{"quota":50000,"period":100000}}}}`
)

func TestSourcesBestFirst(t *testing.T) {
	h := newHost(t)
	now := limited(50*ms, 100*ms)
	h.expect(h.lookUp(now, facts{}), "", "", "", 0)
	h.put(bundleDir+anID+"/config.json", annotated)
	h.expect(h.lookUp(now, facts{}), "n/p/c", "", "", 0)
	h.put(runcState+anID+"/state.json", `{"config":{"cgroups":{"cpu_quota":60000,"cpu_period":100000}}}`)
	h.expect(h.lookUp(now, facts{}), "n/p/c", "", "runc state", 60*ms)
	h.put(hostConfig+anID+"/hostconfig.json", `{"NanoCpus":700000000}`)
	h.put(hostConfig+anID+"/config.v2.json", `{"Name":"/web"}`)
	h.expect(h.lookUp(now, facts{}), "web", "docker", "docker hostconfig.json", 70*ms)
}

func TestSourcesFollowAnUpdate(t *testing.T) {
	h := newHost(t)
	now := limited(50*ms, 100*ms)
	state := runcState + anID + "/state.json"
	h.put(state, `{"config":{"cgroups":{"cpu_quota":50000,"cpu_period":100000}}}`)
	f := h.lookUp(now, facts{})
	h.put(state, `{"config":{"cgroups":{"cpu_quota":70000,"cpu_period":100000}}}`)
	f = h.lookUp(now, f)
	h.expect(f, "", "", "runc state", 70*ms)
	h.remove(state) // the engine is rewriting its file: the last answer stays valid
	h.expect(h.lookUp(now, f), "", "", "runc state", 70*ms)
}

// A file that did not change is not read again: a marker in the facts shows that they were kept.
func TestSourcesReadAFileOnce(t *testing.T) {
	h := newHost(t)
	h.put(runcState+anID+"/state.json", `{"config":{"cgroups":{"cpu_quota":50000,"cpu_period":100000}}}`)
	f := h.lookUp(limited(50*ms, 100*ms), facts{})
	f.runtime = "marker"
	h.expect(h.lookUp(limited(50*ms, 100*ms), f), "", "marker", "runc state", 50*ms)
}

// The OCI configuration is what a container was made with: a limit that was changed since must not be undone for it.
// So its limit is not the declared one, also where it was seen in force.
func TestSourcesDistrustTheSpec(t *testing.T) {
	h := newHost(t)
	h.put(bundleDir+anID+"/config.json", annotated)
	f := h.lookUp(limited(50*ms, 100*ms), facts{})
	h.expect(f, "n/p/c", "", "", 0)
	f = h.lookUp(limited(150*ms, 100*ms), f)
	h.expect(f, "n/p/c", "", "", 0)
	// runc's own state is better as soon as it is there.
	h.put(runcState+anID+"/state.json", `{"config":{"cgroups":{"cpu_quota":60000,"cpu_period":100000}}}`)
	h.expect(h.lookUp(limited(150*ms, 100*ms), f), "n/p/c", "", "runc state", 60*ms)
}

func TestSourcesPodmanName(t *testing.T) {
	h := newHost(t)
	h.put("var/lib/containers/storage/overlay-containers/containers.json", `[{"id":"`+anID+`","names":["db"]}]`)
	h.expect(h.lookUp(limited(50*ms, 100*ms), facts{}), "db", "", "", 0)
}

// An id of ctr is free text. It must not be read as a pattern, nor as a path.
func TestSourcesOddIDs(t *testing.T) {
	h := newHost(t)
	h.put(runcState+anID+"/state.json", `{"config":{"cgroups":{"cpu_quota":50000,"cpu_period":100000}}}`)
	for _, id := range []string{"*", "a*", "[a-z]", `\a`} {
		f := HostSources(h.root).lookUp(Classify("/default/"+id), "/default/"+id, limited(50*ms, 100*ms), facts{})
		if f.declared != nil {
			t.Errorf("%q has the limit of another: %+v", id, f.declared)
		}
	}
}

func TestRedeclared(t *testing.T) {
	h, clock := newHost(t), newClock()
	path := "/docker/" + anID
	m := newMemory(path)
	m.limit(path, 50_000, 100_000)
	put := func(cpus string) { h.put(hostConfig+anID+"/hostconfig.json", `{"NanoCpus":`+cpus+`}`) }
	put("500000000")
	s := scanner(t, m, Options{Sources: HostSources(h.root), Now: clock.Now})
	quota := func() time.Duration {
		t.Helper()
		pods, err := s.Pods()
		if err != nil || pods[0].Containers[0].Declared == nil {
			t.Fatalf("%+v, %v", pods, err)
		}
		return pods[0].Containers[0].Declared.Bandwidth.Quota
	}
	write := func() {
		s.mu.Lock()
		s.written(s.nodes[path], "cpu.cfs_quota_us")
		s.mu.Unlock()
	}
	if got := quota(); got != 50*ms {
		t.Errorf("at first %v", got)
	}
	s.Events()
	clock.pass(2 * time.Second)
	s.lookUpPending() // nothing is in doubt any more
	clock.pass(time.Second)

	put("600000000")
	write()
	if got := quota(); got != 60*ms {
		t.Errorf("right after a write %v", got)
	}
	expectEvents(t, s, "written "+path+" cpu.cfs_quota_us", "redeclared "+path)
	put("700000000") // the engine's file comes after the kernel's
	write()
	if got := quota(); got != 60*ms {
		t.Errorf("within a second %v", got)
	}
	put("800000000")
	clock.pass(time.Second)
	s.lookUpPending()
	if got := quota(); got != 80*ms {
		t.Errorf("a second later %v", got)
	}
	asked := s.nodes[path].lookup.asked
	clock.pass(time.Second)
	s.lookUpPending()
	if again := s.nodes[path].lookup.asked; again != asked {
		t.Errorf("asked at %v and again at %v, though nothing is in doubt", asked, again)
	}
}

// An engine may write its files a moment after it made the group.
func TestLateFiles(t *testing.T) {
	h, clock := newHost(t), newClock()
	path := "/docker/" + anID
	s := scanner(t, newMemory(path), Options{Sources: HostSources(h.root), Now: clock.Now})
	h.put(hostConfig+anID+"/hostconfig.json", `{"NanoCpus":500000000}`)
	h.put(hostConfig+anID+"/config.v2.json", `{"Name":"/web"}`)
	asked := s.nodes[path].lookup.asked
	clock.pass(lookupEvery - 1)
	s.lookUpPending()
	if again := s.nodes[path].lookup.asked; again != asked {
		t.Errorf("asked at %v and again at %v, within a second", asked, again)
	}
	clock.pass(1)
	s.lookUpPending()
	pods, err := s.Pods()
	if err != nil || pods[0].Containers[0].Name != "web" || pods[0].Containers[0].Declared == nil {
		t.Errorf("%+v, %v", pods, err)
	}
}

// The same answer again is no news.
func TestRedeclaredOnlyWhenAnother(t *testing.T) {
	h := newHost(t)
	path := "/docker/" + anID
	m := newMemory(path)
	m.limit(path, 50_000, 100_000)
	h.put(hostConfig+anID+"/hostconfig.json", `{"NanoCpus":500000000}`)
	s := scanner(t, m, Options{Sources: HostSources(h.root)})
	s.Events()
	h.put(hostConfig+anID+"/hostconfig.json", `{"NanoCpus":500000000}`)
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, s)
}

// TestDockerDataRoot: an administrator has moved Docker's files to another disk, and the names go with them.
func TestDockerDataRoot(t *testing.T) {
	for where, key := range map[string]string{"srv/docker": "data-root", "mnt/old": "graph", "var/lib/docker": "",
		"var/snap/docker/common/var-lib-docker": ""} {
		h := newHost(t)
		if key != "" {
			h.put("etc/docker/daemon.json", `{"log-driver": "local", "`+key+`": "/`+where+`"}`)
		}
		h.put(where+"/containers/"+anID+"/hostconfig.json", `{"NanoCpus": 500000000}`)
		h.put(where+"/containers/"+anID+"/config.v2.json", `{"Name": "/web"}`)
		h.expect(h.lookUp(cpu.Bandwidth{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond}, facts{}), "web",
			"docker", "docker hostconfig.json", 50*time.Millisecond)
	}
	h := newHost(t)
	h.put("etc/docker/daemon.json", `{"data-root": "../../etc"}`) // dockerd accepts absolute paths only
	if got := HostSources(h.root).Docker; len(got) != 2 {
		t.Errorf("%q", got)
	}
}
