package agent

import (
	"slices"
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// suppress has offline work bounded when the node's use is above the threshold.
func (w *world) suppress() {
	on := true
	w.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{
		Suppress: strategy.SuppressPatch{Enable: &on}}}.Over(w.agent.Strategy), nil)
}

// TestSuppressKeepsALimit: a group whose owner gave it less than the threshold leaves has that,
// and less where less is left.
func TestSuppressKeepsALimit(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.limit("/batch", 50*ms)
	w.kernel.SetLoad("/batch", sim.Spin(4))
	w.kernel.SetLoad("/web", sim.Spin(3))
	w.suppress()
	w.run(5 * time.Second)
	if got := w.kernel.Bandwidth("/batch").Quota; got >= 50*ms {
		t.Errorf("quota %v above the threshold", got)
	}
	w.kernel.SetLoad("/web", sim.Spin(1))
	for range 20 {
		w.run(time.Second)
		if got := w.kernel.Bandwidth("/batch").Quota; got > 50*ms {
			t.Fatalf("quota %v, and its owner's is 50ms", got)
		}
	}
	w.want("/batch", 50*ms, 0)
}

// TestSuppressKeepsTheRoom: a new offline group shares the room of the others, also where one that covers them is
// replaced by them. What it used before is not taken for use of online work.
func TestSuppressKeepsTheRoom(t *testing.T) {
	w := newShared(t, 2, 4)
	w.agent.colocation.Machine = policy.Machine{Idle: true, LeastWeight: 2}
	w.ask(strategy.MechanismIdle)
	w.classed("/web", workload.ClassLS)
	w.kernel.AddGroup("/batch")
	w.classed("/batch/a", workload.ClassBE)
	w.kernel.SetLoad("/batch/a", sim.Spin(4))
	w.suppress()
	w.run(10 * time.Second)
	groups := []string{"/batch", "/batch/a"}
	room := func() (sum time.Duration) {
		for _, group := range groups {
			if b := w.kernel.Bandwidth(group); b.Limited() && b.Quota < 400*ms { // else its owner's
				sum += b.Quota
			}
		}
		return sum
	}
	before := room()
	if before < 150*ms {
		t.Fatalf("the room is %v", before)
	}
	change := func(what string) {
		for i := range 4 {
			w.run(time.Second)
			if got := room(); got < before*9/10 || got > before*11/10 {
				t.Errorf("%s: %d s later the room is %v, before it was %v", what, i+1, got, before)
			}
		}
	}
	w.classed("/batch/b", workload.ClassBE)
	w.kernel.SetLoad("/batch/b", sim.Spin(2))
	groups = append(groups, "/batch/b")
	change("a second group")
	w.classed("/batch/c", workload.ClassLS)
	w.kernel.SetLoad("/batch/c", sim.Load{})
	change("online work beside them")
}

// TestSuppressOfARaise: offline work that may burst is put back to its owner's limit before it is bounded, so that what
// it goes back to is that, and never a raise.
func TestSuppressOfARaise(t *testing.T) {
	w := newWorld(t)
	w.agent.colocation.Machine = policy.Machine{Idle: true, LeastWeight: 2}
	w.ask(strategy.MechanismIdle)
	w.classed("/web", workload.ClassLS)
	w.kernel.SetLoad("/web", sim.Load{})
	c := w.container("/crunch", 150*ms, sim.Spin(2))
	c.Class, c.QOS = workload.ClassLS, strategy.CPUQOS{Enable: true, SchedIdle: 1}
	c.Strategy.Policy = strategy.CFSQuotaBurstOnly // no burst, below which the kernel takes no quota
	w.alone(c)
	w.place.pods = slices.Clone(w.place.pods)
	w.run(5 * time.Second)
	w.wantRaised("/crunch", 150*ms)
	on, threshold := true, int64(20) // which the node's guard has nothing against
	w.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{
		Suppress: strategy.SuppressPatch{Enable: &on, ThresholdPercent: &threshold}}}.
		Over(w.agent.Strategy), nil)
	w.run(5 * time.Second)
	if got := w.kernel.Bandwidth("/crunch").Quota; got >= 150*ms {
		t.Errorf("quota %v above the threshold", got)
	}
	if c := w.status("/crunch"); c.Quota.Requested != c.Quota.InForce ||
		c.Why != "quota left alone: "+string(plan.Suppressed) {
		t.Errorf("%q, %+v", c.Why, c.Quota)
	}
	w.kernel.SetLoad("/crunch", sim.Load{})
	for range 300 {
		w.run(100 * ms)
		if got := w.kernel.Bandwidth("/crunch").Quota; got > 150*ms {
			t.Fatalf("it wants nothing, and its quota is %v", got)
		}
	}
	if got := w.kernel.Bandwidth("/crunch").Quota; got != 150*ms {
		t.Errorf("no longer bounded, and its quota is %v", got)
	}
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.want("/crunch", 150*ms, 0)
}
