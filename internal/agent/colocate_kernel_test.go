package agent

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/pauses"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
	"plimsoll/internal/workload"
)

// pair is an online and an offline group of the running kernel, and an agent that prefers the one.
type pair struct {
	t               *testing.T
	online, offline *cgrouptest.Group
	agent           *Agent
}

// groupHost takes what a group uses for what the machine does: the machine's own count goes by ticks, which are lost on
// an emulated CPU.
type groupHost struct {
	realHost
	group *cgrouptest.Group
}

func (h groupHost) Busy() (time.Duration, error) { return h.group.Tree().Usage(h.group.Path) }

// newPair has each group want all CPUs there are, the online one twice: so that it has a task for each of two CPUs
// wherever the balancer puts them.
func newPair(t *testing.T, m strategy.Mechanism) *pair {
	t.Helper()
	p := newPairIn(t, cgrouptest.New(t), m)
	p.online.Spin(4)
	p.offline.Spin(2)
	return p
}

func newPairIn(t *testing.T, top *cgrouptest.Group, m strategy.Mechanism) *pair {
	t.Helper()
	p := &pair{t: t, online: top.Child("online"), offline: top.Child("offline")}
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(t.TempDir(), boot, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	on := true
	node := strategy.NodePatch{Colocation: strategy.ColocationPatch{Enable: &on,
		Mechanism: &m}}.Over(strategy.DefaultNode())
	tree := top.Tree()
	tasks := &task.Kernel{}
	machine := policy.Machine{Idle: m == strategy.MechanismIdle || m == strategy.MechanismCoreSched,
		Slice: m == strategy.MechanismSlice, CoreSched: m == strategy.MechanismCoreSched, LeastWeight: 2}
	if tree.Version() == cgroup.V2 {
		machine.LeastWeight = 1
	}
	writer := apply.New(tree, j, time.Now)
	writer.Tasks = tasks
	p.agent = New(Options{Tree: tree,
		Discover: &place{pods: []workload.Pod{p.pod(p.online, workload.ClassLS, node),
			p.pod(p.offline, workload.ClassBE, node)}},
		Host: groupHost{realHost{sysfs.NewHost("/")}, top}, Writer: writer, Tasks: tasks, Switch: &lever{},
		Pauses: pauses.New(""),
		Clock:  time.Now, Log: slog.New(slog.DiscardHandler), Machine: machine, Strategy: node})
	t.Cleanup(func() { p.agent.stop() })
	return p
}

func (p *pair) pod(g *cgrouptest.Group, class workload.Class, node strategy.Node) workload.Pod {
	p.t.Helper()
	inode, err := g.Tree().Inode(g.Path)
	if err != nil {
		p.t.Fatal(err)
	}
	return workload.Pod{Containers: []workload.Container{{ID: workload.ID{Path: g.Path, Inode: inode}, Name: g.Path,
		Runtime: "cgroup",
		Class:   class, QOS: class.QOS(node.Colocation), Strategy: node.Strategy}}}
}

// share is the part of what both use that is the online group's, over a while.
func (p *pair) share(d time.Duration) float64 {
	p.t.Helper()
	online, offline := p.used(d)
	return online / (online + offline)
}

// used is what each uses over a while, in CPU seconds.
func (p *pair) used(d time.Duration) (ofOnline, ofOffline float64) {
	p.t.Helper()
	used := func(g *cgrouptest.Group) time.Duration {
		u, err := g.Tree().Usage(g.Path)
		if err != nil {
			p.t.Fatal(err)
		}
		return u
	}
	online, offline := used(p.online), used(p.offline)
	time.Sleep(d)
	online, offline = used(p.online)-online, used(p.offline)-offline
	p.t.Logf("online %v, offline %v", online, offline)
	return online.Seconds(), offline.Seconds()
}

// knobs are the files that mechanisms write.
func (p *pair) knobs() map[string]string {
	p.t.Helper()
	held := map[string]string{}
	for _, name := range []string{"cpu.shares", "cpu.weight", "cpu.idle"} {
		for _, g := range []*cgrouptest.Group{p.online, p.offline} {
			if data, err := os.ReadFile(g.File(name)); err == nil {
				held[g.Path+"/"+name] = string(data)
			}
		}
	}
	return held
}

// TestKernelPrefers: online tasks that want all CPUs get nearly all of the time beside offline ones, where without
// priority, the offline group having ten times the weight, they get a tenth, and afterwards every file is as it was.
func TestKernelPrefers(t *testing.T) {
	for _, m := range []strategy.Mechanism{strategy.MechanismIdle, strategy.MechanismWeight} {
		t.Run(string(m), func(t *testing.T) {
			p := newPair(t, m)
			if _, err := p.offline.Tree().Idle(p.offline.Path); err != nil && m == strategy.MechanismIdle {
				cgrouptest.Need(t, p.offline.Features().Get(cgroup.FeatureIdle))
			}
			if err := p.offline.Tree().SetWeight(p.offline.Path, 3000); err != nil {
				t.Fatal(err)
			}
			if err := p.online.Tree().SetWeight(p.online.Path, 300); err != nil {
				t.Fatal(err)
			}
			before := p.knobs()
			if got := p.share(time.Second); got > 0.5 {
				t.Errorf("without priority, online gets %.2f", got)
			}
			p.agent.Tick(time.Now())
			if c := p.agent.Status().Colocation; c.Mechanism != m || !c.InForce() {
				t.Errorf("%+v", c)
			}
			if got := p.share(2 * time.Second); got < 0.8 {
				t.Errorf("online gets %.2f of the CPU time", got)
			}
			if err := p.agent.stop(); err != nil {
				t.Fatal(err)
			}
			after := p.knobs()
			for name, held := range before {
				if after[name] != held {
					t.Errorf("%s holds %q, before %q", name, after[name], held)
				}
			}
		})
	}
}

// TestKernelCores: where the kernel has core scheduling, no offline task runs beside an online one on the threads of a
// core. One online task has a core, so that three offline ones have the other cores, instead of all threads but one.
func TestKernelCores(t *testing.T) {
	if has, why := (&task.Kernel{}).HasCookies(); !has { // what is missing is held by TestKernelCookie of internal/task
		cgrouptest.Elsewhere(t, "test/vm/core.sh", "no cookies: %s", why)
	}
	p := newPairIn(t, cgrouptest.New(t), strategy.MechanismCoreSched)
	topology, err := sysfs.NewHost("/").Topology()
	if err != nil {
		t.Fatal(err)
	}
	threads := len(topology.Places)
	others := float64(threads - 2) // threads of the other cores
	p.online.Spin(1)
	p.offline.Spin(threads)
	if online, offline := p.used(time.Second); offline < 1.2*others*online {
		t.Fatalf("without cookies, offline used %.2f beside %.2f on %d threads", offline, online, threads)
	}
	p.agent.Tick(time.Now())
	if c := p.agent.Status().Colocation; c.Mechanism != strategy.MechanismCoreSched || !c.InForce() {
		t.Fatalf("%+v", c)
	}
	if online, offline := p.used(2 * time.Second); offline > 1.1*others*online {
		t.Errorf("offline used %.2f beside %.2f on %d threads, two of them the online task's core", offline, online,
			threads)
	}
	if err := p.agent.stop(); err != nil {
		t.Fatal(err)
	}
	if online, offline := p.used(time.Second); offline < 1.2*others*online {
		t.Errorf("afterwards, offline used %.2f beside %.2f", offline, online)
	}
}

// TestKernelSuppresses: above the threshold, offline work is bounded to what the threshold leaves within seconds, by
// real quotas, and afterwards has its limit back.
func TestKernelSuppresses(t *testing.T) {
	p := newPair(t, strategy.MechanismWeight)
	on, threshold := true, int64(5) // so low that others on the machine cannot keep the use below it
	p.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{
		Suppress: strategy.SuppressPatch{Enable: &on,
			ThresholdPercent: &threshold}}}.Over(p.agent.Strategy), nil)
	tree, path := p.offline.Tree(), p.offline.Path
	if _, err := tree.Burst(path); err == nil { // since 5.14: the owner's own, above any quota here
		if err := tree.SetBurst(path, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	before, err := tree.Bandwidth(path)
	if err != nil {
		t.Fatal(err)
	}
	now := before
	for deadline := time.Now().Add(10 * time.Second); !now.Limited() &&
		time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		p.agent.Tick(time.Now())
		if now, err = tree.Bandwidth(path); err != nil {
			t.Fatal(err)
		}
	}
	if cpus, err := p.agent.Host.Online(); err != nil || !now.Limited() || now.CPUs() > 0.1*float64(cpus) {
		t.Errorf("offline work has %v on %d CPUs (%v)", now, cpus, err)
	}
	if err := p.agent.stop(); err != nil {
		t.Fatal(err)
	}
	if after, err := tree.Bandwidth(path); err != nil || after != before {
		t.Errorf("%v after, %v before (%v)", after, before, err)
	}
}

// TestKernelConfines: above the threshold, offline work is bound to one CPU by real cpusets, with what is below it, and
// gets back all it had.
func TestKernelConfines(t *testing.T) {
	top := cgrouptest.New(t)
	top.Bindable()
	p := newPairIn(t, top, strategy.MechanismWeight)
	p.offline.Spin(2)
	p.offline.Bindable()
	inner := p.offline
	if top.Tree().Version() == cgroup.V1 { // on v2 a group with tasks holds no groups with controllers
		inner = p.offline.Child("inner")
		inner.Bindable()
	} else {
		handCPUSets(t, top.Tree(), "/", top.Path)
	}
	topology := sysfs.NewHost("/").Topology
	on, err := topology()
	if err != nil {
		t.Fatal(err)
	}
	if len(on.Places) < 2 {
		t.Fatalf("%d CPUs: nothing can be bound", len(on.Places))
	}
	p.agent.cpus.Topology, p.agent.cpus.Rules = topology, strategy.DefaultReserve()
	if err := p.offline.Tree().SetCPUs(p.offline.Path, on.Set()); err != nil {
		t.Fatal(err)
	}
	enable, threshold, cpuset := true, int64(5), strategy.SuppressCPUSet
	p.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{
		Suppress: strategy.SuppressPatch{Enable: &enable,
			ThresholdPercent: &threshold, Policy: &cpuset}}}.Over(p.agent.Strategy), nil)
	effective := func(g *cgrouptest.Group) int {
		t.Helper()
		set, err := g.Tree().EffectiveCPUs(g.Path)
		if err != nil {
			t.Fatal(err)
		}
		return len(set)
	}
	before := effective(p.offline)
	for deadline := time.Now().Add(10 * time.Second); effective(p.offline) > 1 &&
		time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		p.agent.Tick(time.Now())
	}
	if effective(p.offline) != 1 || effective(inner) != 1 || effective(top) != before {
		t.Errorf("bound to %d CPUs, what is below it to %d, what is above it to %d", effective(p.offline),
			effective(inner), effective(top))
	}
	if err := p.agent.stop(); err != nil {
		t.Fatal(err)
	}
	if effective(p.offline) != before || effective(inner) != before {
		t.Errorf("afterwards %d and %d CPUs, before %d", effective(p.offline), effective(inner), before)
	}
}

// handCPUSets has groups hand the cpuset controller on, for the time of the test.
func handCPUSets(t *testing.T, tree *cgroup.Tree, groups ...string) {
	t.Helper()
	for _, group := range groups {
		before, err := tree.CPUSetsEnabled(group)
		if err == nil && !before {
			err = tree.EnableCPUSets(group, true)
			t.Cleanup(func() {
				if err := tree.EnableCPUSets(group, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
