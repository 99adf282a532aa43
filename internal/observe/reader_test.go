package observe

import (
	"path"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// newReader is a reader whose agent does nothing.
func newReader(tree *cgroup.Tree, clock func() time.Time) *Reader {
	return New(Reader{Tree: tree, Clock: clock, Yield: func() {}, Failed: func(*Group, error) {},
		WhyPaused: func(string, time.Time) string { return "" },
		Extra:     func(uint64) cpu.Counters { return cpu.Counters{} }})
}

// TestScopeOfAContainer: a scope has the strategy and the declared limit of its container; where systemd has rounded
// that, what its file holds is its limit, and nothing else is declared.
func TestScopeOfAContainer(t *testing.T) {
	const scope = "/crio-a.scope"
	declared := &workload.Declared{Bandwidth: cpu.Bandwidth{Quota: 33 * ms, Period: 100 * ms}}
	for quota, want := range map[time.Duration]*workload.Declared{33 * ms: declared, 40 * ms: nil} {
		k := sim.New(sim.Config{CPUs: 4, Version: 2, BurstFile: true, Seed: 1})
		for _, group := range []string{scope, scope + "/container"} {
			k.AddGroup(group)
		}
		tree, err := cgroup.Detect(k)
		if err == nil {
			err = tree.SetQuota(scope, quota)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := workload.Container{ID: workload.ID{Path: scope + "/container", Inode: 2},
			Scope:    workload.ID{Path: scope, Inode: 1},
			Declared: declared, Strategy: strategy.Default()}
		pod, _ := newReader(tree, k.Now).ReadPod(k.Now(), workload.Pod{Containers: []workload.Container{c}})
		if len(pod.Containers) != 1 || pod.Containers[0].Around == nil {
			t.Fatalf("%+v", pod)
		}
		if got := pod.Containers[0].Around; got.Declared != want || got.Strategy != c.Strategy ||
			pod.Containers[0].Declared != declared {
			t.Errorf("quota %v: declared %+v, strategy %+v", quota, got.Declared, got.Strategy)
		}
	}
}

// lists counts the lists of processes that are read of a group.
type lists struct {
	*sim.Kernel
	read map[string]int
}

func (l *lists) ReadFile(name string) ([]byte, error) {
	if path.Base(name) == "cgroup.procs" {
		l.read[path.Base(path.Dir(name))]++
	}
	return l.Kernel.ReadFile(name)
}

// TestReadyPod: a pod has processes as soon as its container has, and its own list is not read any more then. Without
// them it counts as empty one reading later than its container.
func TestReadyPod(t *testing.T) {
	k := &lists{Kernel: sim.New(sim.Config{CPUs: 4, Version: 1, BurstFile: true, Seed: 1}), read: map[string]int{}}
	k.AddGroup("/pod")
	k.AddGroup("/pod/s")
	k.AddGroup("/pod/s/c")
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	c := workload.Container{ID: workload.ID{Path: "/pod/s/c", Inode: 3}, Strategy: strategy.Default(),
		Scope: workload.ID{Path: "/pod/s", Inode: 2}}
	pod := workload.Pod{ID: workload.ID{Path: "/pod", Inode: 1}, Containers: []workload.Container{c}}
	r := newReader(tree, k.Now)
	ready := func() (bool, bool) {
		r.StaleAll(k.Now())
		p, ok := r.ReadPod(k.Now(), pod)
		if !ok {
			t.Fatal("not read")
		}
		return p.Group.Ready, p.Containers[0].Ready
	}
	if p, c := ready(); p || c {
		t.Fatalf("without a process: pod %v, container %v", p, c)
	}
	k.SetTasks("/pod/s/c", 1)
	r.groups[c.ID].Stale(k.Now()) // its throttle was reported, and the pod's files are not due
	p, _ := r.ReadPod(k.Now(), pod)
	if in := p.Containers[0]; !p.Group.Ready || !in.Around.Ready || !in.Ready {
		t.Fatalf("with a process: pod %v, scope %v, container %v", p.Group.Ready, in.Around.Ready, in.Ready)
	}
	before := k.read["pod"]
	if p, c := ready(); !p || !c || k.read["pod"] != before {
		t.Errorf("once more: pod %v, container %v, %d lists of the pod", p, c, k.read["pod"]-before)
	}
	k.SetTasks("/pod/s/c", 0)
	if p, c := ready(); !p || c {
		t.Errorf("the process has ended: pod %v, container %v", p, c)
	}
	if p, c := ready(); p || c {
		t.Errorf("at the next reading: pod %v, container %v", p, c)
	}
}

// TestEmptyGroupIsReadAgain: a group that had no processes when it was first read is found to have some soon after,
// though nothing reports it. One that stays empty is read ever more rarely.
func TestEmptyGroupIsReadAgain(t *testing.T) {
	for late, most := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, 10 * time.Second: 4 * time.Second, time.Hour: rarelyEvery + time.Second,
	} {
		k := &lists{Kernel: sim.New(sim.Config{CPUs: 4, Version: 1, BurstFile: true, Seed: 1}), read: map[string]int{}}
		k.AddGroup("/c")
		tree, err := cgroup.Detect(k)
		if err != nil {
			t.Fatal(err)
		}
		r := newReader(tree, k.Now)
		r.Subscribed = true
		c := workload.Container{ID: workload.ID{Path: "/c", Inode: 1}, Strategy: strategy.Default()}
		c.Class = workload.ClassLS
		readyAt := func(after time.Duration) bool {
			p, ok := r.ReadPod(k.Now().Add(after), workload.Pod{Containers: []workload.Container{c}})
			if !ok {
				t.Fatal("not read")
			}
			return p.Containers[0].Ready
		}
		at := time.Duration(0)
		for ; at < late; at += time.Second {
			if readyAt(at) {
				t.Fatalf("%v: without processes it has some", at)
			}
		}
		if reads, most := k.read["c"], 20+int(late/rarelyEvery); reads > most {
			t.Errorf("read %d times in %v, want at most %d", reads, late, most)
		}
		k.SetTasks("/c", 1)
		for !readyAt(at) {
			if at += time.Second; at > late+most {
				t.Fatalf("%v after the processes came it still has none", at-late)
			}
		}
	}
}

// TestLearn: what was written is what the file holds until the next turn, which reads the file again. A refill changes
// nothing.
func TestLearn(t *testing.T) {
	id := workload.ID{Path: "/a", Inode: 1}
	for name, c := range map[string]struct {
		change plan.Change
		held   plan.Value
		want   cpu.Bandwidth
		again  bool
	}{
		"a quota": {plan.Change{Knob: plan.Quota}, "80ms", cpu.Bandwidth{Quota: 80 * ms, Burst: 5 * ms}, true},
		"a burst": {plan.Change{Knob: plan.Burst}, "20ms", cpu.Bandwidth{Quota: 50 * ms, Burst: 20 * ms}, true},
		"not read back": {plan.Change{Knob: plan.Quota, To: "80ms"}, "",
			cpu.Bandwidth{Quota: 80 * ms, Burst: 5 * ms}, true},
		"a refill": {plan.Change{Knob: plan.Burst, Refill: true}, "5ms",
			cpu.Bandwidth{Quota: 50 * ms, Burst: 5 * ms}, false},
		"a weight": {plan.Change{Knob: plan.Weight}, "7", cpu.Bandwidth{Quota: 50 * ms, Burst: 5 * ms}, false},
	} {
		r := newReader(nil, time.Now)
		g := &Group{DiskAt: time.Unix(1000, 0), Disk: cpu.Bandwidth{Quota: 50 * ms, Burst: 5 * ms}}
		r.groups[id], c.change.Cgroup = g, id
		r.Learn([]plan.Result{{Change: c.change, Outcome: plan.Applied, InForce: c.held}})
		if g.Disk != c.want || g.DiskAt.IsZero() != c.again {
			t.Errorf("%s: %+v, read again %v; want %+v, %v", name, g.Disk, g.DiskAt.IsZero(), c.want, c.again)
		}
	}
}
