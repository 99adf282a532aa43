package agent

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/apply"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestUndoneIsSaid: an owner's write that inotify tells of, and after which the quota is what it was, is a problem
// until the quota is another one. Where the limit is declared that decides.
func TestUndoneIsSaid(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	c := w.container("/b", 50*ms, sim.Load{})
	c.Declared = &workload.Declared{Source: "a test", Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}}
	w.alone(c)
	w.run(time.Second)
	var found []apply.Undone
	asked := errors.New("no watches")
	w.agent.Undone = func() ([]apply.Undone, error) {
		list := found
		found = nil
		return list, asked
	}
	count := func(what string, n int64) {
		t.Helper()
		if got := w.agent.Status().Writes.Undone; got != n {
			t.Errorf("%s: %d undone, want %d", what, got, n)
		}
	}
	w.run(time.Second)
	w.wantProblem("")
	for _, path := range []string{"/a", "/b", "/gone"} {
		id := workload.ID{Path: path}
		if path != "/gone" {
			id = w.id(path)
		}
		found = append(found, apply.Undone{ID: id, InFile: plan.Time(50 * ms)})
	}
	w.run(time.Second)
	count("by inotify", 1)
	w.wantProblem("/a: another program wrote the quota during a refill, and the quota is still 50ms")
	w.limit("/a", 60*ms)
	w.place.touched = []string{"/a"}
	w.run(time.Second)
	w.wantProblem("")
	count("written again", 1)
}

// TestRefillableAreNamed: the groups that may be refilled are named as they are subscribed to, before the first refill,
// and those whose limit is declared apart. A group with the policy none is not named,
// nor is any where nothing is refilled.
func TestRefillableAreNamed(t *testing.T) {
	for _, refill := range []bool{true, false} {
		w, _ := subscribed(t, refill)
		w.agent.Strategy.LoadLinePercent = 50 // subscribes to /c too
		a, b, c := w.container("/a", 50*ms, sim.Load{}), w.container("/b", 50*ms, sim.Load{}), w.container("/c", 50*ms,
			sim.Load{})
		b.Declared = &workload.Declared{Source: "a test", Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}}
		c.Strategy.Policy = strategy.None
		for _, x := range []workload.Container{a, b, c} {
			w.alone(x)
		}
		var named [][]workload.ID
		w.agent.Refillable = func(undeclared, declared []workload.ID) { named = append(named, undeclared, declared) }
		w.run(time.Second)
		var want [][]workload.ID
		if refill {
			want = [][]workload.ID{{a.ID}, {b.ID}}
		}
		if diff := cmp.Diff(want, named); diff != "" {
			t.Errorf("refill %v: (-want +got)\n%s", refill, diff)
		}
	}
}

// TestUndoneByDeclaration: a declared limit that is not in force is written in its owner's place; where a refill was
// made as it was declared, the write counts as undone.
func TestUndoneByDeclaration(t *testing.T) {
	for p, undone := range map[strategy.Policy]int64{strategy.CFSQuotaBurstOnly: 1, strategy.CPUBurstOnly: 0} {
		t.Run(string(p), func(t *testing.T) {
			w, _ := subscribed(t, true)
			c := w.container("/a", 50*ms, sim.Periodic(730*ms, sim.Fixed(70*ms), 1))
			c.Strategy.Policy = p
			declare := func(quota time.Duration) {
				c.Declared = declared(quota)
				w.place.pods = []workload.Pod{{Containers: []workload.Container{c}}}
			}
			declare(50 * ms)
			w.run(10 * time.Second)
			declare(60 * ms)
			w.run(2 * time.Second)
			w.wantProblem("")
			w.run(8 * time.Second)
			if n := w.agent.Status().Writes.Undone; n != undone {
				t.Errorf("%d undone, want %d", n, undone)
			}
			if got := w.kernel.Bandwidth("/a").Quota; got != 60*ms {
				t.Errorf("%v is in force, 60ms is declared", got)
			}
			w.wantProblem("")
		})
	}
}
