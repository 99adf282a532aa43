package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/exclusive"
	"plimsoll/internal/journal"
	"plimsoll/internal/pauses"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// newShared is a world whose CPUs can be given away.
func newShared(t *testing.T, version, cpus int) *world {
	return sharedOn(t, sim.Config{CPUs: cpus, Version: version, BurstFile: true, CPUSets: true,
		InheritsAgain: version == 2, Seed: 1})
}

func sharedOn(t *testing.T, machine sim.Config) *world {
	t.Helper()
	k := sim.New(machine)
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, kernel: k, tree: tree, place: &place{wake: make(chan struct{}, 1)}, host: &host{kernel: k},
		lever: &lever{},
		disk:  journal.NewMemory()}
	w.revive()
	return w
}

// revive makes an agent, as after a crash: what the last one left behind is put back first.
func (w *world) revive() {
	w.t.Helper()
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	writer := apply.New(w.tree, j, w.kernel.Now)
	writer.Tasks, writer.Root = fakeTasks{}, "/"
	writer.Restore(nil, false)
	w.agent = New(Options{Tree: w.tree, Discover: w.place, Host: w.host, Writer: writer, Switch: w.lever,
		Pauses: pauses.New(""), Clock: w.kernel.Now, Log: slog.New(slog.DiscardHandler),
		Rules:    policy.Rules{Burst: true, Nested: true},
		Strategy: strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 100}}, Version: "1.0",
		Kernel: "sim",
		Reserving: exclusive.Options{Topology: func() (cpu.Topology, error) { return w.kernel.Topology(), nil },
			Rules: strategy.Reserve{Policy: strategy.ReserveCPUSet, MinShared: 1, Shield: w.shield}}})
}

// made makes a group with a limit, and tells of it as a container.
func (w *world) made(path string, quota time.Duration, exclusive workload.Exclusive, request float64) workload.ID {
	w.t.Helper()
	w.kernel.AddGroup(path)
	if err := w.tree.SetQuota(path, quota); err != nil {
		w.t.Fatal(err)
	}
	w.kernel.SetTasks(path, 1)
	id := w.id(path)
	w.place.pods = append(append([]workload.Pod{}, w.place.pods...), workload.Pod{Containers: []workload.Container{
		{ID: id, Name: path, Runtime: "cgroup", Strategy: strategy.Default(), Exclusive: exclusive, Request: request}}})
	return id
}

// files are what stands of CPUs and quotas.
func (w *world) files(groups ...string) string {
	w.t.Helper()
	var text []string
	for _, g := range groups {
		set, err := w.tree.CPUs(g)
		if err != nil {
			w.t.Fatal(err)
		}
		b, err := w.tree.Bandwidth(g)
		if err != nil {
			w.t.Fatal(err)
		}
		quota := "max"
		if b.Limited() {
			quota = b.Quota.String()
		}
		text = append(text, g+"="+set.String()+" "+quota)
	}
	return strings.Join(text, ", ")
}

func bothVersions(t *testing.T, test func(*testing.T, *world, int)) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) { test(t, newShared(t, version, 4), version) })
	}
}

// TestReserve: who asks has exclusive CPUs and no quota, all others are confined, whoever is new is so in the next
// turn, and at the end, or after a crash, every file is what it was.
func TestReserve(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.made("/a", 150*ms, workload.ExclusiveStrict, 1.5)
		w.made("/b", 100*ms, workload.ExclusiveByClass, 0)
		w.kernel.AddGroup("/plain")
		before := w.files("/a", "/b", "/plain")
		w.run(time.Second)
		if got, want := w.files("/a", "/b", "/plain"), "/a=0-1 max, /b=2-3 100ms, /plain=2-3 max"; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		w.kernel.AddGroup("/new")
		w.agent.cpus.Regroup()
		w.agent.Tick(w.kernel.Now())
		if got, want := w.files("/new"), "/new=2-3 max"; got != want {
			t.Errorf("new: %s, want %s", got, want)
		}
		if got := w.agent.Status().Reserve; got == nil || got.Shared != "2-3" || len(got.Exclusive) != 1 ||
			got.Changed != 4 ||
			!cmp.Equal(got.Exclusive[0], report.ExclusiveCPUs{Cgroup: "/a", Request: 1.5, CPUs: "0-1", N: 2,
				MayUse: "0-1", Unlimited: true}) {
			t.Errorf("status %+v", got)
		}
		writes := w.ours()
		w.run(10 * time.Second)
		if n := w.ours() - writes; n != 0 {
			t.Errorf("%d writes where nothing happened", n)
		}
		w.revive() // kill -9
		if got := w.files("/a", "/b", "/plain"); got != before {
			t.Errorf("after the crash: %s, before: %s", got, before)
		}
		w.run(time.Second)
		if err := w.agent.stop(); err != nil {
			t.Error(err)
		}
		if got := w.files("/a", "/b", "/plain"); got != before {
			t.Errorf("at the end: %s, before: %s", got, before)
		}
	})
}

// TestReserveWhereTasksNeedCPUs: what inherited its CPUs and has tasks cannot do so again on most kernels. It has all
// CPUs then, after a crash and at the end, and is reserved and confined from there as well.
func TestReserveWhereTasksNeedCPUs(t *testing.T) {
	w := sharedOn(t, sim.Config{CPUs: 4, Version: 2, BurstFile: true, CPUSets: true, Seed: 1})
	w.made("/a", 150*ms, workload.ExclusiveStrict, 1.5)
	w.made("/b", 100*ms, workload.ExclusiveByClass, 0)
	w.kernel.AddGroup("/plain")
	w.run(time.Second)
	const reserved, free = "/a=0-1 max, /b=2-3 100ms, /plain=2-3 max", "/a=0-3 150ms, /b=0-3 100ms, /plain= max"
	for range 2 {
		if got := w.files("/a", "/b", "/plain"); got != reserved {
			t.Errorf("%s, want %s", got, reserved)
		}
		w.revive() // kill -9
		if got := w.files("/a", "/b", "/plain"); got != free {
			t.Errorf("after the crash: %s, want %s", got, free)
		}
		w.run(time.Second)
	}
	if err := w.agent.stop(); err != nil {
		t.Error(err)
	}
	if got := w.files("/a", "/b", "/plain"); got != free {
		t.Errorf("at the end: %s, want %s", got, free)
	}
}

// TestReserveHeirs: on v1 a group that is made in a confined one copies its CPUs, and is widened with it.
func TestReserveHeirs(t *testing.T) {
	for _, crash := range []bool{false, true} {
		w := newShared(t, 1, 4)
		w.made("/a", 100*ms, workload.ExclusiveYes, 1)
		w.kernel.AddGroup("/b")
		w.run(time.Second)
		w.kernel.AddGroup("/b/known")
		w.run(3 * time.Second)
		w.made("/c", 100*ms, workload.ExclusiveYes, 1) // the pool gets smaller, and with it what has been copied
		w.run(3 * time.Second)
		w.kernel.AddGroup("/b/late") // nobody has seen it when the end comes
		if got, want := w.files("/b/known", "/b/late"), "/b/known=2-3 max, /b/late=2-3 max"; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if crash {
			w.revive()
		} else if err := w.agent.stop(); err != nil {
			t.Error(err)
		}
		if got, want := w.files("/b", "/b/known",
			"/b/late"), "/b=0-3 max, /b/known=0-3 max, /b/late=0-3 max"; got != want {
			t.Errorf("crash %v: %s, want %s", crash, got, want)
		}
	}
}

// TestReservePod: a pod's quota is lifted with its container's, and both are lowered again in an order that v1 takes.
func TestReservePod(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.made("/pod", 200*ms, workload.ExclusiveByClass, 0)
		w.made("/pod/a", 100*ms, workload.ExclusiveYes, 1)
		w.made("/pod/b", 100*ms, workload.ExclusiveByClass, 0)
		c := w.place.pods
		w.place.pods = []workload.Pod{{ID: c[0].Containers[0].ID,
			Containers: []workload.Container{c[1].Containers[0], c[2].Containers[0]}}}
		before := w.files("/pod", "/pod/a", "/pod/b")
		w.run(time.Second)
		pod := map[int]string{1: "0-3", 2: ""}[version]
		if got, want := w.files("/pod", "/pod/a",
			"/pod/b"), "/pod="+pod+" max, /pod/a=0 max, /pod/b=1-3 100ms"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		opted := w.place.pods[0].Containers
		w.place.pods = []workload.Pod{{ID: c[0].Containers[0].ID, Containers: append([]workload.Container{}, opted...)}}
		w.place.pods[0].Containers[0].Exclusive = workload.ExclusiveNo
		w.run(time.Second)
		if got := w.files("/pod", "/pod/a", "/pod/b"); got != before {
			t.Errorf("opted out: %s, before: %s", got, before)
		}
	})
}

// TestReserveBurstable: one that keeps the share pool keeps its quota, and is raised to the number of its CPUs at most.
func TestReserveBurstable(t *testing.T) {
	w := newShared(t, 1, 6)
	w.made("/a", 150*ms, workload.ExclusiveYes, 1)
	w.made("/b", 300*ms, workload.ExclusiveYes, 2)
	w.place.pods[0].Containers[0].Strategy.Policy = strategy.CFSQuotaBurstOnly
	w.kernel.SetLoad("/a", sim.Spin(6))
	w.run(3 * time.Second)
	if got := w.kernel.Bandwidth("/b"); got.Quota != 300*ms {
		t.Errorf("/b is not at its limit: %v", got)
	}
	w.wantRaised("/a", 150*ms)
	for range 50 {
		w.run(100 * ms)
		if got := w.kernel.Bandwidth("/a").Quota; got > 400*ms {
			t.Fatalf("raised to %v, and it is bound to 4 CPUs", got)
		}
	}
}

// TestReserveHold: the kill switch puts CPUs back, and nothing is taken for another program's doing.
func TestReserveHold(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.made("/a", 100*ms, workload.ExclusiveYes, 1)
		w.kernel.AddGroup("/b")
		before := w.files("/a", "/b")
		w.run(time.Second)
		during := w.files("/a", "/b")
		if _, err := w.agent.Hold(t.Context(), true, "a test"); err != nil {
			t.Fatal(err)
		}
		w.run(3 * time.Second)
		if got := w.files("/a", "/b"); got != before {
			t.Errorf("held: %s, before: %s", got, before)
		}
		if err := w.agent.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.run(3 * time.Second)
		if got := w.files("/a", "/b"); got != during || got == before {
			t.Errorf("resumed: %s, before it was held: %s", got, during)
		}
	})
}

// TestReserveOthers: the kubelet's CPU manager is left alone, and what is not there is said.
func TestReserveOthers(t *testing.T) {
	w := newShared(t, 2, 4)
	w.made("/a", 100*ms, workload.ExclusiveYes, 1)
	w.made("/big", 100*ms, workload.ExclusiveYes, 8)
	w.run(time.Second)
	if got := strings.Join(w.agent.Status().Problems, "\n"); !strings.Contains(got,
		"/big: no exclusive CPUs: it needs 8 CPUs (request 8); of 4 CPUs online, 1 is exclusive already") {
		t.Errorf("problems: %s", got)
	}
	w.agent.cpus.Owner = func() string { return "the kubelet" }
	w.run(3 * time.Second)
	if got, want := w.files("/a", "/big"), "/a= 100ms, /big= 100ms"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w = newShared(t, 2, 4)
	w.agent.cpus.Tree = newWorld(t).tree
	w.made("/a", 100*ms, workload.ExclusiveYes, 1)
	w.agent.Tick(w.kernel.Now())
	if got := strings.Join(w.agent.cpus.Problems(), ""); !strings.Contains(got, "no cpuset controller") {
		t.Errorf("problem %q", got)
	}
}

// TestReserveKept: what the kubelet keeps by amount is the pool's, and isolated CPUs are nobody's.
func TestReserveKept(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.agent.cpus.Kept = func() (cpu.Set, float64) { return cpu.Set{0}, 1.5 }
		w.agent.cpus.Isolated = cpu.Set{3}
		w.made("/a", 100*ms, workload.ExclusiveYes, 1)
		w.made("/b", 100*ms, workload.ExclusiveYes, 1)
		w.run(time.Second)
		got := w.agent.Status().Reserve
		if got == nil || len(got.Exclusive) != 1 || got.Exclusive[0].CPUs != "1" || got.Shared != "0,2-3" ||
			got.MinShared != 1.5 || len(got.Refused) != 1 {
			t.Fatalf("status %+v", got)
		}
		want := "it needs 1 CPU (request 1); of 4 CPUs online, 1 is exclusive already, 1 is isolated or in another's " +
			"partition (3), 1 is kept back (0), and the share pool keeps 1.5: 0.5 are left"
		if got.Refused[0].Why != want {
			t.Errorf("%s, want %s", got.Refused[0].Why, want)
		}
	})
}

// TestReserveForeign: another program's CPUs stay, leave the journal, and are told of once; a reset is answered later.
func TestReserveForeign(t *testing.T) {
	w := newShared(t, 1, 4)
	w.made("/a", 100*ms, workload.ExclusiveYes, 1)
	w.kernel.AddGroup("/b")
	w.kernel.AddGroup("/c")
	var told []string
	w.agent.Foreign = func(group, _ string) { told = append(told, group) }
	w.run(time.Second)
	for file, cpus := range map[string]string{"cpuset/b/cpuset.cpus": "2", "cpuset/c/cpuset.cpus": "0-3"} {
		if err := w.kernel.ForeignWrite(file, cpus); err != nil {
			t.Fatal(err)
		}
	}
	w.run(5 * time.Second)
	if got, want := w.files("/b", "/c"), "/b=2 max, /c=0-3 max"; got != want || !cmp.Equal(told, []string{"/b"}) {
		t.Errorf("%s, want %s; told of %v", got, want, told)
	}
	w.run(15 * time.Second)
	if got, want := w.files("/c"), "/c=1-3 max"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := w.agent.stop(); err != nil {
		t.Error(err)
	}
	if got, want := w.files("/a", "/b", "/c"), "/a=0-3 100ms, /b=2 max, /c=0-3 max"; got != want {
		t.Errorf("at the end %s, want %s", got, want)
	}
}
