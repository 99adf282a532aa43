package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// attacked is what became of a victim, and what the agent did.
type attacked struct {
	refills   int64
	throttled time.Duration
	answers   int // throttle events that the agent was woken for
	attackers int64
}

// victim is a service in a namespace of its own: a job of 80 ms about every 700 ms, with a limit of half a CPU. It is
// throttled in each, once without refills, and never has a burst.
func victim() Group {
	return Group{Path: "/kube/victim/c", Pod: "/kube/victim", Tenant: "victim", Quota: 50 * ms, Period: 100 * ms,
		Request: 0.5, Load: sim.Periodic(690*ms, sim.Fixed(80*ms), 2), Strategy: with(strategy.CFSQuotaBurstOnly)}
}

// attack runs a victim beside attackers for d. each is called after every turn.
func attack(t *testing.T, s Scenario, d time.Duration, each func(*World)) attacked {
	t.Helper()
	w := mustNew(t, s)
	w.Run(2*time.Second, nil)
	before, still, answers := w.refills(victim().Path), w.Kernel.Throttled(victim().Path), w.answers
	w.Run(d, func(agent.Turn) {
		if each != nil {
			each(w)
		}
	})
	got := attacked{refills: w.refills(victim().Path) - before, throttled: w.Kernel.Throttled(victim().Path) - still,
		answers: w.answers - answers}
	for _, c := range w.Agent.Status().Containers {
		if c.Pod != victim().Pod {
			got.attackers += c.Totals.Refills
		}
	}
	return got
}

func (w *World) refills(path string) int64 {
	for _, c := range w.Agent.Status().Containers {
		if c.Cgroup == path {
			return c.Totals.Refills
		}
	}
	return 0
}

// attackers are containers of one namespace, each in a pod of its own.
func attackers(n int, of string, g Group) []Group {
	var groups []Group
	for i := range n {
		g.Pod, g.Tenant, g.Period, g.Strategy.Policy = fmt.Sprintf("/kube/a%03d",
			i), of, 100*ms, strategy.CFSQuotaBurstOnly
		g.Path = g.Pod + "/c"
		groups = append(groups, g)
	}
	return groups
}

// phased is a job after each interval, the first at any time within one: a demand that does not last, and that no
// raise ends.
func phased(every, cost time.Duration) sim.Load {
	return sim.Load{Threads: 1, Jobs: func(r *rand.Rand) func() (sim.Job, bool) {
		at := time.Duration(r.Int64N(int64(every))) - every
		return func() (sim.Job, bool) {
			at += every
			return sim.Job{At: max(0, at), Cost: cost}, true
		}
	}}
}

// TestManyThrottledGroupsOfOneTenant: 150 containers that are throttled three times a second use up the time that
// writes may take. Those of another tenant are refilled as if they were alone.
func TestManyThrottledGroupsOfOneTenant(t *testing.T) {
	g := Group{Quota: 10 * ms, Request: 0.1, Load: phased(300*ms, 14*ms), Strategy: with(strategy.CFSQuotaBurstOnly)}
	run := func(n int, of string) attacked {
		return attack(t, Scenario{Kernel: mainline(256, 3), Threshold: 100,
			Groups: append([]Group{victim()}, attackers(n, of, g)...), Events: true,
			WriteCost: 400 * time.Microsecond}, 10*time.Second, nil)
	}
	alone, beside, same := run(0, ""), run(150, "attacker"), run(150, "victim")
	t.Logf("alone %+v, beside an attacker %+v, in one namespace %+v", alone, beside, same)
	if alone.refills < 10 || beside.refills < alone.refills || beside.throttled > alone.throttled+5*ms {
		t.Errorf("beside an attacker %+v, alone %+v", beside, alone)
	}
	if same.refills > alone.refills/2 {
		t.Errorf("in one namespace %+v, alone %+v: writes are not scarce, and it proves nothing", same, alone)
	}
}

// TestRefusalsAreBounded: 150 containers that are throttled in every period, and that the node has no room for, do
// not wake the thread for each throttle; and one tenant's refusals cost another nothing.
func TestRefusalsAreBounded(t *testing.T) {
	g := Group{Quota: 10 * ms, Request: 0.1, Load: sim.Spin(1), Strategy: with(strategy.CFSQuotaBurstOnly)}
	run := func(n int) attacked {
		return attack(t, Scenario{Kernel: mainline(32, 3), Threshold: 54,
			Groups: append([]Group{victim()}, attackers(n, "attacker", g)...), Events: true,
			WriteCost: 400 * time.Microsecond}, 10*time.Second, nil)
	}
	alone, beside := run(0), run(150)
	t.Logf("alone %+v, beside %+v", alone, beside)
	if most := 5000; beside.answers > most {
		t.Errorf("woken %d times in 10 s, want %d at most: 150 groups are throttled ten times a second", beside.answers,
			most)
	}
	if beside.refills < alone.refills*9/10 {
		t.Errorf("beside %+v, alone %+v", beside, alone)
	}
}

// TestStartsInALoop: a tenant whose containers are made anew over and over, and are always in their start, takes
// nothing from the start of another's, nor from its other refills.
func TestStartsInALoop(t *testing.T) {
	newcomer := victim()
	newcomer.Pod, newcomer.Path, newcomer.Load = "/kube/new", "/kube/new/c", sim.Spin(2)
	run := func(loop int, of string) (old attacked, used float64) {
		n, next := 0, time.Time{}
		scene := Scenario{Kernel: mainline(64, 3), Threshold: 100, Groups: []Group{victim()}, Events: true,
			WriteCost: 400 * time.Microsecond}
		old = attack(t, scene, 10*time.Second, func(w *World) {
			if w.Kernel.Now().Before(next) {
				return
			}
			next = w.Kernel.Now().Add(time.Second)
			if n == 1 {
				w.begins(t, newcomer)
			}
			w.place.pods = slices.DeleteFunc(slices.Clone(w.place.pods), func(p workload.Pod) bool {
				return p.Path != victim().Pod && p.Path != newcomer.Pod
			})
			for i := range loop {
				if n > 0 {
					w.Kernel.RemoveGroup(fmt.Sprintf("/kube/a%d-%d/c", i, n-1))
				}
				w.begins(t, Group{Path: fmt.Sprintf("/kube/a%d-%d/c", i, n), Pod: fmt.Sprintf("/kube/a%d-%d", i, n),
					Tenant: of, Quota: 20 * ms, Period: 100 * ms, Request: 0.2, Load: sim.Spin(1),
					Strategy: with(strategy.CFSQuotaBurstOnly)})
			}
			if n++; n > 1 {
				used = w.Kernel.Used(newcomer.Path).Seconds()
			}
		})
		return old, used
	}
	alone, start := run(0, "")
	beside, startBeside := run(40, "attacker")
	_, startSame := run(40, "victim")
	t.Logf("alone %+v and %.2f CPU seconds in a start, beside an attacker %+v and %.2f, in one namespace %.2f", alone,
		start, beside, startBeside, startSame)
	if alone.refills < 10 || beside.refills < alone.refills || beside.throttled > alone.throttled+5*ms {
		t.Errorf("beside an attacker %+v, alone %+v", beside, alone)
	}
	if startBeside < 0.95*start {
		t.Errorf("a start beside an attacker has %.2f CPU seconds, alone %.2f", startBeside, start)
	}
	if startSame > 0.85*start {
		t.Errorf("in one namespace a start has %.2f CPU seconds, alone %.2f: it proves nothing", startSame, start)
	}
}

// begins makes a container while the world runs.
func (w *World) begins(t *testing.T, g Group) {
	t.Helper()
	w.make(g)
	for _, path := range []string{g.Pod, g.Path} {
		if err := w.Limit(path, g.Quota, g.Period); err != nil {
			t.Fatal(err)
		}
	}
	w.Kernel.SetTasks(g.Path, 1)
	w.Kernel.SetLoad(g.Path, g.Load)
	w.place.pods = slices.Clone(w.place.pods)
}

// TestRoomIsShared: containers that want all that the node can spare fill it up to 90 % of the threshold. Another
// tenant is refilled all the same, up to its part.
func TestRoomIsShared(t *testing.T) {
	g := Group{Quota: 10 * ms, Request: 0.1, Load: sim.Spin(2), Strategy: with(strategy.CFSQuotaBurstOnly)}
	g.Strategy.CFSQuotaBurstPercent = 1000
	run := func(n int, of string) attacked {
		return attack(t, Scenario{Kernel: mainline(8, 3), Threshold: 50,
			Groups: append([]Group{victim()}, attackers(n, of, g)...), Events: true},
			20*time.Second, nil)
	}
	alone, beside, same := run(0, ""), run(20, "attacker"), run(20, "victim")
	t.Logf("alone %+v, beside an attacker %+v, in one namespace %+v", alone, beside, same)
	if alone.refills < 20 || beside.refills < alone.refills*9/10 {
		t.Errorf("beside an attacker %+v, alone %+v", beside, alone)
	}
	if same.refills > alone.refills/2 {
		t.Errorf("in one namespace %+v, alone %+v: there is room enough, and it proves nothing", same, alone)
	}
}

// TestRaisedWhereWritesAreScarce: where a write takes so long that a batch uses up its share of writes in half a
// second, its events are suppressed. Its quota is raised all the same, so that the batch is done long before 3.3 s have
// passed, which it takes at its limit.
func TestRaisedWhereWritesAreScarce(t *testing.T) {
	for seed := range uint64(10) {
		load := sim.Periodic(4700*ms, sim.Fixed(time.Second), 1)
		g := Group{Path: "/lab/batch", Quota: 30 * ms, Period: 100 * ms, Load: load, Strategy: with(strategy.Auto)}
		w := mustNew(t, Scenario{Kernel: mainline(3, seed), Threshold: 100, Groups: []Group{g}, Events: true,
			Ahead:     true,
			WriteCost: 2500 * time.Microsecond})
		const batches = 12
		w.Run(batches*4700*ms, nil)
		checkCaps(t, w)
		lost, raises := w.Kernel.ThrottledWall(g.Path)/batches, w.Agent.Status().Containers[0].Totals.Raises
		if lost > 600*ms || raises < 8 {
			t.Errorf("seed %d: each batch lost %v, %d raises", seed, lost, raises)
		}
	}
}
