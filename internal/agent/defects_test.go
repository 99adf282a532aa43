package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Each test here holds what koordlet (koordinator.sh, v1.8) was seen not to; docs/MIGRATION.md lists them. Those that
// need a kubelet have a twin in test/kube.

// file writes a file of a group as its owner does.
func (w *world) file(path, name, text string) {
	w.t.Helper()
	if err := w.kernel.ForeignWrite("cpu"+path+"/"+name, text); err != nil {
		w.t.Fatal(err)
	}
}

// inPod arranges a pod of one container.
func (w *world) inPod(path string, c workload.Container) {
	w.t.Helper()
	w.place.pods = []workload.Pod{{ID: w.id(path), Name: path, Containers: []workload.Container{c}}}
}

// policy switches everything to a policy.
func (w *world) policy(p strategy.Policy) {
	pods := append([]workload.Pod{}, w.place.pods...)
	for i := range pods {
		pods[i].Containers = append([]workload.Container{}, pods[i].Containers...)
		for j := range pods[i].Containers {
			pods[i].Containers[j].Strategy.Policy = p
		}
	}
	w.place.pods = pods
}

// refused counts the writes that the kernel did not take.
func (w *world) refused() int {
	n := 0
	for _, x := range w.kernel.Writes() {
		if !x.Foreign && x.Err != nil {
			n++
		}
	}
	return n
}

// A: 1000 % of the limit is more than mainline takes, and is cut to what it takes.
func TestDefaultPercentGivesABurst(t *testing.T) {
	w := newWorld(t)
	w.alone(w.container("/web", 100*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	w.run(3 * time.Second)
	w.want("/web", 100*ms, 100*ms)
	if c := w.status("/web").Burst; w.refused() != 0 || c.Requested != 1000*ms || !c.Clamped {
		t.Errorf("%d writes refused, %+v", w.refused(), c)
	}
}

// B: where the kernel has no burst, none is told of.
func TestBurstIsReportedOnlyWhereItIsInForce(t *testing.T) {
	w := newWorld(t)
	w.agent.Rules.Burst = false
	w.alone(w.container("/web", 100*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	w.run(3 * time.Second)
	s := w.agent.Status()
	if c := w.status("/web").Burst; c.InForce != 0 || c.Changed || len(s.Writes.Results[plan.Burst]) != 0 {
		t.Errorf("%+v, %+v", c, s.Writes)
	}
}

// C: a burst never keeps a raised quota from coming down.
func TestRaisedQuotaComesDownBesideABurst(t *testing.T) {
	w := newWorld(t)
	c := w.container("/hog", 50*ms, sim.Spin(2))
	c.Strategy.CPUBurstPercent = 200
	w.alone(c)
	w.run(3 * time.Second)
	w.wantRaised("/hog", 50*ms)
	w.kernel.AddGroup("/others")
	w.kernel.SetLoad("/others", sim.Spin(4))
	w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 30}}, nil)
	w.run(10 * time.Second)
	if b := w.kernel.Bandwidth("/hog"); b.Quota != 50*ms || w.refused() != 0 {
		t.Errorf("%v, %d writes refused", b, w.refused())
	}
}

// D: what a container had is not left in its pod's limit when the container is gone.
func TestRestartsLeaveNothingInThePodsLimit(t *testing.T) {
	w := newWorld(t)
	w.group("/pod", 50*ms)
	for i := range 4 {
		name := fmt.Sprintf("/pod/%d", i)
		w.inPod("/pod", w.container(name, 50*ms, sim.Spin(2)))
		w.run(3 * time.Second)
		w.wantRaised("/pod", 50*ms)
		if b := w.kernel.Bandwidth("/pod"); b.Quota > 150*ms {
			t.Errorf("after %d restarts the pod has %v", i, b)
		}
		if i < 3 {
			w.kernel.RemoveGroup(name)
		}
	}
	w.policy(strategy.None)
	w.run(2 * time.Second)
	w.want("/pod", 50*ms, 0)
	w.want("/pod/3", 50*ms, 0)
}

// E: a limit that its owner puts back over a raise is seen at once, and the container is helped again within seconds.
func TestResetByTheOwnerIsSeenAndHelpedAgain(t *testing.T) {
	w := newWorld(t)
	w.hog("/hog")
	w.run(3 * time.Second)
	w.wantRaised("/hog", 50*ms)
	w.file("/hog", "cpu.cfs_burst_us", "0")
	w.limit("/hog", 50*ms)
	if c := w.status("/hog"); c.Quota.InForce != 50*ms && !c.Quota.Changed {
		t.Errorf("told as raised: %+v", c.Quota)
	}
	w.run(5 * time.Second)
	w.wantRaised("/hog", 50*ms)
}

// F: time above the limit is counted as it passes, not in whole seconds, and unused time below the limit comes back.
func TestBudgetCountsTheTimeThatPassed(t *testing.T) {
	w := newWorld(t)
	c := w.container("/hog", 50*ms, sim.Spin(2))
	c.Strategy.CFSQuotaBurstPeriodSeconds = 5 // 300 % of half a CPU: 5 CPU seconds above the limit
	w.alone(c)
	w.run(20 * time.Second)
	above := w.kernel.Used("/hog") - 10*time.Second
	if above < 4*time.Second || above > 6*time.Second {
		t.Errorf("%v above the limit in 20 s, the budget is 5 s", above)
	}
	w.kernel.SetLoad("/hog", sim.Periodic(100*ms, sim.Fixed(35*ms), 1)) // 70 % of the limit
	w.run(30 * time.Second)
	if left := w.status("/hog").BudgetLeft; left == nil || *left < 3*time.Second {
		t.Errorf("of 30 s at 70 %% of the limit, %v came back", left)
	}
}

// G: a raise that is no longer needed is given back, also when the node is idle.
func TestRaiseThatIsNotNeededIsGivenBack(t *testing.T) {
	w := newWorld(t)
	w.hog("/hog")
	w.run(3 * time.Second)
	w.wantRaised("/hog", 50*ms)
	w.kernel.SetLoad("/hog", sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
	w.run(10 * time.Second)
	w.want("/hog", 50*ms, 50*ms)
}

// H: a pod whose limit is not the sum of its containers' gets back its own.
func TestPodKeepsALimitOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.group("/pod", 350*ms)
	w.inPod("/pod", w.container("/pod/a", 100*ms, sim.Spin(4)))
	w.run(3 * time.Second)
	w.wantRaised("/pod/a", 100*ms)
	w.policy(strategy.None)
	w.run(2 * time.Second)
	w.want("/pod", 350*ms, 0)
	w.want("/pod/a", 100*ms, 0)
}

// A limit that a pod has for all its containers together, which may have none (pod-level resources of Kubernetes), gets
// a burst and is raised as a container's is; the containers are left alone.
func TestLimitOfAPodForAll(t *testing.T) {
	w := newWorld(t)
	w.group("/pod", 40*ms)
	w.inPod("/pod", w.container("/pod/free", 40*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	w.file("/pod/free", "cpu.cfs_quota_us", "-1")
	w.place.pods[0].Own = true
	w.run(3 * time.Second)
	w.want("/pod", 40*ms, 40*ms)
	w.kernel.SetLoad("/pod/free", sim.Spin(2))
	w.run(3 * time.Second)
	w.wantRaised("/pod", 40*ms)
	w.policy(strategy.None)
	w.run(2 * time.Second)
	w.want("/pod", 40*ms, 0)
	w.want("/pod/free", cpu.Unlimited, 0)
	if w.refused() != 0 {
		t.Errorf("%d writes refused", w.refused())
	}
}

// Such a limit is left alone where those of the pod's containers would be.
func TestLimitOfAPodOfAnotherClass(t *testing.T) {
	for _, class := range []workload.Class{workload.ClassBE, workload.ClassLSR} {
		w := newWorld(t)
		w.group("/pod", 40*ms)
		w.inPod("/pod", w.container("/pod/free", 40*ms, sim.Spin(2)))
		w.file("/pod/free", "cpu.cfs_quota_us", "-1")
		w.place.pods[0].Own, w.place.pods[0].Containers[0].Class = true, class
		w.run(5 * time.Second)
		w.want("/pod", 40*ms, 0)
	}
}

// Beside the containers of a pod of Kubernetes there is one that has no limit and does nothing: the pod follows the
// others all the same, by what they have above their limits, and has the sum of their bursts.
func TestPodFollowsBesideItsSandbox(t *testing.T) {
	w := newWorld(t)
	w.group("/pod", 100*ms)
	a := w.container("/pod/a", 50*ms, sim.Spin(4))
	b := w.container("/pod/b", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
	b.Strategy.CPUBurstPercent = 40
	pause := w.container("/pod/pause", 50*ms, sim.Load{})
	w.file("/pod/pause", "cpu.cfs_quota_us", "-1")
	w.place.pods = []workload.Pod{{ID: w.id("/pod"), Name: "/pod", Containers: []workload.Container{a, b, pause}}}
	w.run(5 * time.Second)
	w.wantRaised("/pod/a", 50*ms)
	raise := w.kernel.Bandwidth("/pod/a").Quota - 50*ms
	if got := w.kernel.Bandwidth("/pod").Quota; got != 100*ms+raise {
		t.Errorf("the pod has %v beside a raise of %v", got, raise)
	}
	w.kernel.SetLoad("/pod/a", sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
	w.run(20 * time.Second)
	w.want("/pod/a", 50*ms, 50*ms)
	w.want("/pod", 100*ms, 70*ms)
}

// I: what has no quota gets neither a quota nor a burst, with any policy:
// the kernel would refuse its owner's next limit.
func TestWhatHasNoQuotaIsLeftAlone(t *testing.T) {
	for _, p := range []strategy.Policy{strategy.None, strategy.Auto, strategy.CPUBurstOnly,
		strategy.CFSQuotaBurstOnly} {
		w := newWorld(t)
		w.kernel.AddGroup("/pod")
		c := w.container("/pod/free", 50*ms, sim.Load{})
		w.file("/pod/free", "cpu.cfs_quota_us", "-1")
		c.Declared = declared(100 * ms)
		w.kernel.SetLoad("/pod/free", sim.Spin(2))
		w.inPod("/pod", c)
		w.policy(p)
		w.run(5 * time.Second)
		if n := w.ours(); n != 0 {
			t.Errorf("%s: %d writes", p, n)
		}
	}
}

// J: the period is the owner's, whatever it is; what is written goes with it.
func TestPeriodIsTheOwners(t *testing.T) {
	w := newWorld(t)
	c := w.container("/short", 50*ms, sim.Load{})
	w.file("/short", "cpu.cfs_quota_us", "5000")
	w.file("/short", "cpu.cfs_period_us", "10000")
	w.kernel.SetLoad("/short", sim.Spin(2))
	w.alone(c)
	w.policy(strategy.None)
	w.run(2 * time.Second)
	if b := w.kernel.Bandwidth("/short"); b != (cpu.Bandwidth{Quota: 5 * ms, Period: 10 * ms}) || w.ours() != 0 {
		t.Errorf("with policy none: %v", b)
	}
	w.policy(strategy.Auto)
	w.run(3 * time.Second)
	if b := w.kernel.Bandwidth("/short"); b.Period != 10*ms || b.Quota <= 5*ms || b.Quota+b.Burst > 15*ms {
		t.Errorf("with policy auto: %v", b)
	}
	for _, x := range w.kernel.Writes() {
		if !x.Foreign && strings.Contains(x.Name, "period") {
			t.Errorf("written: %+v", x)
		}
	}
}
