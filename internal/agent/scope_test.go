package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// The groups of a container that crun made with systemd (CRI-O): each has the container's limit but the pod, whose
// limit is the sum over two containers.
const (
	scopePod   = "/kubepods.slice/pod.slice"
	scopeOuter = scopePod + "/crio-1.scope"
	scopeInner = scopeOuter + "/container"
	scopeOther = scopePod + "/crio-2.scope"
)

// inScope puts such a pod into a world; its first container wants two CPUs and is limited to half of one.
func (w *world) inScope(policy strategy.Policy) {
	w.t.Helper()
	pod := workload.Pod{ID: w.group(scopePod, 100*ms), Name: "default/web"}
	outer := w.group(scopeOuter, 50*ms)
	c := w.container(scopeInner, 50*ms, sim.Spin(2))
	c.Scope, c.Strategy.Policy = outer, policy
	other := w.container(scopeOther, 50*ms, sim.Load{})
	other.Strategy.Policy = policy
	pod.Containers = []workload.Container{c, other}
	w.place.pods = append(w.place.pods, pod)
}

// TestScopeIsRaisedWithItsContainer: a scope, its container and their pod are raised together, so that the container
// uses more than its limit, and lowered together; the kernel (v1: no child above its parent)
// refuses none of the writes.
func TestScopeIsRaisedWithItsContainer(t *testing.T) {
	w := newWorld(t)
	w.inScope(strategy.CFSQuotaBurstOnly)
	w.run(3 * time.Second)
	inner := w.kernel.Bandwidth(scopeInner).Quota
	w.wantRaised(scopeInner, 50*ms)
	w.want(scopeOuter, inner, 0)
	w.want(scopePod, 50*ms+inner, 0)
	before := w.kernel.Used(scopeInner)
	w.run(5 * time.Second)
	if got := (w.kernel.Used(scopeInner) - before).Seconds() / 5; got < 1.2 {
		t.Errorf("%.2f CPUs used with a cap of 1.5: the limit is 0.5", got)
	}
	w.kernel.SetLoad(scopeInner, sim.Load{})
	w.run(6 * time.Second)
	for path, limit := range map[string]time.Duration{scopeInner: 50 * ms, scopeOuter: 50 * ms, scopePod: 100 * ms} {
		w.want(path, limit, 0)
	}
	if n := w.refused(); n != 0 {
		t.Errorf("%d writes were refused", n)
	}
}

// TestScopeHasTheBurstOfItsContainer: all three levels have it, and all is put back at the end.
func TestScopeHasTheBurstOfItsContainer(t *testing.T) {
	w := newWorld(t)
	w.inScope(strategy.CPUBurstOnly)
	w.run(2 * time.Second)
	w.want(scopeInner, 50*ms, 50*ms)
	w.want(scopeOuter, 50*ms, 50*ms)
	if b := w.kernel.Bandwidth(scopePod); b.Burst < 50*ms {
		t.Errorf("the pod holds %v", b)
	}
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.want(scopeInner, 50*ms, 0)
	w.want(scopeOuter, 50*ms, 0)
	w.want(scopePod, 100*ms, 0)
}

// TestScopeIsRefilled: where the kernel tells of throttles, those of the scope are ended like the container's: it comes
// to its cap, and no quota is changed before the demand lasts.
func TestScopeIsRefilled(t *testing.T) {
	w, e := subscribed(t, true)
	w.run(time.Second)
	w.inScope(strategy.CFSQuotaBurstOnly)
	w.run(10 * time.Second) // all of it its start
	w.want(scopeInner, 50*ms, 0)
	w.want(scopeOuter, 50*ms, 0)
	if got := w.kernel.Used(scopeInner).Seconds() / 10; got < 1.3 || got > 1.55 {
		t.Errorf("%.2f CPUs used with a cap of 1.5: the limit is 0.5", got)
	}
	for _, path := range []string{scopeInner, scopeOuter, scopePod} {
		found := false
		for _, inode := range e.watched {
			found = found || inode == w.id(path).Inode
		}
		if !found {
			t.Errorf("the kernel was not asked for the throttles of %s", path)
		}
	}
}

// TestScopeMakesWay: its owner, who names the scope, can make it smaller after it has said so.
func TestScopeMakesWay(t *testing.T) {
	w := newWorld(t)
	w.inScope(strategy.Auto)
	w.run(3 * time.Second)
	w.wantRaised(scopeOuter, 50*ms)
	if !w.agent.PrepareResize(scopeOuter, cpu.Bandwidth{Quota: 20 * ms, Period: 100 * ms}) {
		t.Error("there was nothing to put back")
	}
	for path, limit := range map[string]time.Duration{scopeInner: 50 * ms, scopeOuter: 50 * ms, scopePod: 100 * ms} {
		w.want(path, limit, 0)
	}
	w.limit(scopeInner, 20*ms)
	w.limit(scopeOuter, 20*ms)
	w.run(resizeFor + 3*time.Second)
	w.wantRaised(scopeOuter, 20*ms)
	w.want(scopeOuter, w.kernel.Bandwidth(scopeInner).Quota, w.kernel.Bandwidth(scopeOuter).Burst)
	w.wantProblem("")
}

// TestScopeThatSomebodyElseWrites is left alone, and no raise of the container above it is tried.
func TestScopeThatSomebodyElseWrites(t *testing.T) {
	w := newWorld(t)
	w.inScope(strategy.CFSQuotaBurstOnly)
	w.run(3 * time.Second)
	w.wantRaised(scopeInner, 70*ms)
	if err := w.resized(scopeInner, 50*ms); err != nil {
		t.Fatal(err)
	}
	w.limit(scopeOuter, 70*ms)
	w.run(5 * time.Second)
	w.want(scopeOuter, 70*ms, 0)
	if n := w.refused(); n != 0 {
		t.Errorf("%d writes were refused", n)
	}
}

// TestIdleScope: while nothing runs in the pod, all of it is skipped.
func TestIdleScope(t *testing.T) {
	w := newWorld(t)
	w.inScope(strategy.CPUBurstOnly)
	w.kernel.SetLoad(scopeInner, sim.Load{})
	w.kernel.SetTasks(scopeInner, 1)
	w.kernel.SetTasks(scopeOther, 1)
	w.run(10 * time.Second)
	for _, g := range w.agent.groups {
		if !w.agent.reader.Skipped(g.Group) {
			t.Errorf("%s is not skipped", g.Path)
		}
	}
	if len(w.agent.groups) != 4 {
		t.Errorf("%d groups, want 4", len(w.agent.groups))
	}
	if c := w.status(scopeOuter); c.Level != string(observe.LevelPod) || !c.Burst.Changed {
		t.Errorf("the status of the scope: %+v", c)
	}
}
