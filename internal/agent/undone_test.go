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

// TestUndoneBeforeTheEnd: an agent undid an owner's write, and ends before that can show. The next one writes it. A
// quota that is neither the one from before nor the declared one is another program's.
func TestUndoneBeforeTheEnd(t *testing.T) {
	ends := map[string]func(*world){"killed": (*world).kill, "handed over": func(w *world) { w.succeed(true) }}
	for name, end := range ends {
		for found, want := range map[time.Duration]time.Duration{50 * ms: 60 * ms, 55 * ms: 55 * ms} {
			w := newWorld(t)
			c := w.container("/a", 40*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
			declare := func(quota time.Duration) {
				c.Declared = declared(quota)
				w.place.pods = []workload.Pod{{Containers: []workload.Container{c}}}
			}
			declare(40 * ms)
			w.run(3 * time.Second)
			w.limit("/a", 50*ms)
			declare(50 * ms)
			w.run(2 * time.Minute)
			w.want("/a", 50*ms, 50*ms)
			end(w)
			w.limit("/a", found)
			declare(60 * ms)
			w.run(2 * time.Second)
			if got := w.kernel.Bandwidth("/a").Quota; got != found {
				t.Errorf("%s, %v: at once it is %v", name, found, got)
			}
			w.run(8 * time.Second)
			if got := w.kernel.Bandwidth("/a").Quota; got != want {
				t.Errorf("%s: of %v in the file %v has come, want %v", name, found, got, want)
			}
			problem := ""
			if want == found {
				problem = "/a"
			}
			w.wantProblem(problem)
		}
	}
}

// TestForgottenQuotas: the next agent keeps nothing of groups that it does not look after.
func TestForgottenQuotas(t *testing.T) {
	w := newWorld(t)
	w.alone(w.container("/a", 40*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	w.run(3 * time.Second)
	w.place.pods = nil
	w.kill()
	all := func(plan.Key) bool { return true }
	if got := w.agent.ledger.Known(all); len(got) != 1 {
		t.Fatalf("at first %v is known: the test proves nothing", got)
	}
	w.run(time.Second)
	if got := w.agent.ledger.Known(all); len(got) != 0 {
		t.Errorf("%v is known", got)
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
