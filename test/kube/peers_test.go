//go:build kube

package kube

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/sysfs"
	"plimsoll/lab/peers"
)

// raisePercent is the most that both agents may give, of the limit: their default.
const raisePercent = 300

// versus says how much is measured.
type versus struct {
	peers.Settings
	short bool
}

// versusSettings: PLIMSOLL_PEERS is short or full.
func versusSettings() versus {
	v := versus{Settings: peers.Settings{Limit: 50 * ms, Rate: apacheRate, Load: 25 * time.Second, Pods: 50,
		Small: 10 * ms, Steps: 5, Spin: 4 * time.Second,
		Resized: 40 * ms, Patience: 15 * time.Second, Idle: 15 * time.Second, Percent: raisePercent}}
	if v.short = os.Getenv("PLIMSOLL_PEERS") == "short"; v.short {
		v.Load, v.Pods, v.Steps, v.Idle = 5*time.Second, 4, 1, 5*time.Second
	}
	return v
}

// TestPeers is the comparison of docs/COMPARISON.md (make bench-peers). Each way has the same pod, the same requests at
// the same instants, and the same kubelet, one after another.
func TestPeers(t *testing.T) {
	v := versusSettings()
	r := peers.Result{Settings: v.Settings, Machine: machine(t)}
	defer func() { // what there is, also where the rest fails
		var page bytes.Buffer
		r.WriteText(&page)
		fmt.Printf("\n%s", page.String())
	}()
	agents := map[string]runner{
		"koordlet":              &koordlet{t: t, percent: 1000},
		"koordlet, burst 100 %": &koordlet{t: t, percent: 100},
		"Plimsoll":              newShipped(t),
	}
	ways := []struct{ name, limit string }{{"limit", apacheLimit}, {"limit x 3", "1500m"}, {"no limit", ""},
		{"koordlet", apacheLimit},
		{"koordlet, burst 100 %", apacheLimit}, {"Plimsoll", apacheLimit}}
	for _, w := range ways {
		if v.short && w.name != "limit" && w.name != "koordlet" && w.name != "Plimsoll" {
			continue
		}
		way := peers.Way{Name: w.name}
		begin := time.Now()
		v.one(t, &way, w.limit, agents[w.name])
		t.Logf("%s: %v", w.name, time.Since(begin).Round(time.Second))
		r.Ways = append(r.Ways, way)
	}
	begin := time.Now()
	small := v.crowd(t)
	t.Logf("%d pods: %v", v.Pods, time.Since(begin).Round(time.Second))
	for i := range r.Ways {
		w := &r.Ways[i]
		if w.Name == "limit" || w.Name == "koordlet" || w.Name == "Plimsoll" {
			begin := time.Now()
			v.many(t, w, small[:v.Steps], small, agents[w.Name])
			small = small[v.Steps:]
			t.Logf("%s, full node: %v", w.Name, time.Since(begin).Round(time.Second))
		}
	}
}

// machine is what the result depends on.
func machine(t *testing.T) peers.Machine {
	t.Helper()
	kernel, err := sysfs.NewHost("/").Release()
	if err != nil {
		t.Fatal(err)
	}
	m := peers.Machine{Kernel: kernel, Cgroup: cluster.groups.Version().String(), CPUs: runtime.NumCPU(), CPU: "CPU"}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, model, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(model)
		}
	}
	m.Kubernetes = serverVersion(t)
	runtimes := strings.TrimSpace(kubectl(t, "get", "node", nodeName, "-o",
		"jsonpath={.status.nodeInfo.containerRuntimeVersion}"))
	m.Containerd, _, _ = strings.Cut(strings.TrimPrefix(runtimes, "containerd://"), "+")
	_, m.Koordlet, _ = strings.Cut(strings.TrimSuffix(koordletBinary(t), "/koordlet"), "/koordlet-")
	version, err := command(nil, cluster.binary, "--version")
	if err != nil {
		t.Fatal(err)
	}
	m.Plimsoll = strings.TrimPrefix(strings.TrimSpace(version), "plimsoll version ")
	return m
}

// one measures a way with one service, and a pod that is resized; agent is nil where none runs.
func (v versus) one(t *testing.T, w *peers.Way, limit string, agent runner) {
	t.Helper()
	service := apachePod(t, "service", limit, nil)
	victim := start(t, want{name: "resized", containers: []container{runs("a", apacheLimit, apacheLimit)}})
	service.serve(1, 3*time.Second, &served{latency: load.NewLatencies()}) // warm
	if agent != nil {
		agent.begin()
		time.Sleep(6 * time.Second) // koordlet knows what the node uses from its mean of 5 s on
		w.One = costs(t, agent, func() { w.Service = v.serve(service) })
	} else {
		w.Service = v.serve(service)
	}
	service.delete()
	if limit == apacheLimit {
		w.Resize = v.resize(victim, agent != nil)
		if agent != nil {
			w.Kill = v.kill(victim, agent)
		}
	}
	victim.delete()
}

// serve is the load, under observation.
func (v versus) serve(p *pod) *peers.Service {
	p.t.Helper()
	s := served{latency: load.NewLatencies()}
	o := p.observe("apache")
	p.serve(2, v.Load, &s)
	saw := o.end()
	l := s.latency
	return &peers.Service{P50: l.Quantile(0.5), P90: l.Quantile(0.9), P99: l.Quantile(0.99), Mean: l.Mean(),
		Requests: int(l.Count()), Periods: s.periods, Throttled: s.throttled, Stood: saw.stood(),
		Throttles: len(saw.throttles), CPUs: s.used.Seconds() / s.during.Seconds()}
}

// runs is a container that uses a CPU from SIGUSR1 to SIGUSR2.
func runs(name, request, limit string) container {
	return container{name, request, limit, []string{"sh", "-c",
		`trap 'exit 0' TERM; trap 'go=1' USR1; trap 'go=' USR2; while :; do [ -n "$go" ] || { sleep 100000 & wait; }; done`}}
}

// spins has a container of runs use a CPU, or no more.
func (p *pod) spins(name string, on bool) {
	p.t.Helper()
	pids, err := cluster.groups.Tasks(p.containers[name])
	if err != nil || len(pids) == 0 {
		p.t.Fatalf("the tasks of %s: %v, %v", name, pids, err)
	}
	s := syscall.SIGUSR2
	if on {
		s = syscall.SIGUSR1
	}
	if err := syscall.Kill(pids[0], s); err != nil {
		p.t.Fatal(err)
	}
}

// stands is what the files of a pod with one container hold.
func (p *pod) stands() peers.Files {
	p.t.Helper()
	l := p.limits()
	return peers.Files{Pod: l[""].Quota, Container: l["a"].Quota, PodBurst: l[""].Burst, ContainerBurst: l["a"].Burst}
}

// raises has the container want a CPU until it has a higher quota than its limit, or the patience is over.
func (v versus) raises(p *pod, limit time.Duration, expected bool) peers.Files {
	p.t.Helper()
	p.spins("a", true)
	for end := time.Now().Add(v.Patience); expected && time.Now().Before(end); time.Sleep(20 * ms) {
		if f := p.stands(); f.Container >= 2*limit {
			return f
		}
	}
	return p.stands()
}

// resize makes the limit smaller while the container is raised.
func (v versus) resize(p *pod, raised bool) *peers.Resize {
	p.t.Helper()
	r := &peers.Resize{Raised: v.raises(p, v.Limit, raised)}
	size := milli(int(v.Resized / (100 * time.Microsecond)))
	p.resize("a", size, size)
	begin := time.Now()
	var since time.Time
	for time.Since(begin) < v.Patience && !r.Done {
		said := p.conditions()["PodResizeInProgress"]
		switch failed := strings.HasPrefix(said, "Error"); {
		case failed && since.IsZero():
			since = time.Now()
			if r.Error == "" {
				r.Error = said
			}
		case !failed && !since.IsZero():
			r.Failed, since = r.Failed+time.Since(since), time.Time{}
		}
		if said == "" && p.inForce() == size {
			r.Done, r.Took = true, time.Since(begin)
		}
		time.Sleep(50 * ms)
	}
	if !since.IsZero() {
		r.Failed += time.Since(since)
	}
	p.spins("a", false)
	time.Sleep(v.Patience / 2)
	r.After = p.stands()
	return r
}

// inForce is the limit that the kubelet reports to be.
func (p *pod) inForce() string {
	p.t.Helper()
	var o struct {
		Status struct {
			ContainerStatuses []struct {
				Resources struct{ Limits struct{ CPU string } }
			}
		}
	}
	if get(p.t, p.at(), &o); len(o.Status.ContainerStatuses) == 0 {
		return ""
	}
	return o.Status.ContainerStatuses[0].Resources.Limits.CPU
}

// kill ends the agent while the container is raised.
func (v versus) kill(p *pod, agent runner) *peers.Kill {
	p.t.Helper()
	k := &peers.Kill{Raised: v.raises(p, v.Resized, true)}
	agent.end(syscall.SIGKILL)
	k.At = p.stands()
	p.spins("a", false)
	time.Sleep(v.Patience)
	k.Later = p.stands()
	return k
}

// crowd makes the pods of the full node, in lots: a start is given so much time.
func (v versus) crowd(t *testing.T) (pods []*pod) {
	t.Helper()
	for len(pods) < v.Pods {
		var list []want
		for i := range min(25, v.Pods-len(pods)) {
			list = append(list, want{name: fmt.Sprintf("small%d", len(pods)+i),
				containers: []container{runs("a", "5m", "100m")}})
		}
		pods = append(pods, starts(t, list...)...)
	}
	return pods
}

// many measures a way on the full node: what the agent takes while nothing happens, and how soon it acts when a
// container begins to want a CPU, one after another. Each container does so once, for an agent may have left it raised.
func (v versus) many(t *testing.T, w *peers.Way, steps, all []*pod, agent runner) {
	t.Helper()
	if agent != nil {
		agent.begin()
		time.Sleep(6 * time.Second)
		w.Many = costs(t, agent, func() { time.Sleep(v.Idle) })
	}
	for _, p := range steps {
		o := p.observe("a")
		p.spins("a", true)
		time.Sleep(v.Spin)
		p.spins("a", false)
		s := o.end()
		w.Steps = append(w.Steps, peers.Step{Effect: s.effect(), Stood: s.stood()})
		t.Logf("%s, a container begins to spin: %d throttles, stood still for %v, %+v", w.Name, len(s.throttles),
			s.stood().Round(ms), s.effect())
	}
	if agent == nil {
		return
	}
	agent.end(syscall.SIGTERM)
	w.Stopped = &peers.Left{}
	for _, p := range all {
		for _, b := range p.limits() {
			w.Stopped.Groups++
			if b.Quota != v.Small {
				w.Stopped.Quotas++
			}
			if b.Burst != 0 {
				w.Stopped.Bursts++
			}
		}
	}
}
