package agent

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/reserve"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// suppressed is a world whose offline container has a limit of 400 ms and is bounded to less.
func suppressed(t *testing.T, declared *workload.Declared) *world {
	t.Helper()
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.kernel.SetLoad("/batch", sim.Spin(4))
	w.declare("/batch", declared)
	w.suppress()
	w.run(5 * time.Second)
	w.wantSuppressed("/batch", 400*ms)
	return w
}

// declare has a container's owner say what its limit is.
func (w *world) declare(path string, d *workload.Declared) {
	w.alter(path, func(c *workload.Container) { c.Declared = d })
}

// alter changes what is known of a container.
func (w *world) alter(path string, f func(*workload.Container)) {
	w.place.pods = slices.Clone(w.place.pods)
	for i := range w.place.pods {
		if c := w.place.pods[i].Containers[0]; c.Path == path {
			f(&c)
			w.place.pods[i].Containers = []workload.Container{c}
		}
	}
}

// wantSuppressed: the file holds less than the limit, and the status tells both, and of no raise.
func (w *world) wantSuppressed(path string, limit time.Duration) {
	w.t.Helper()
	held := w.kernel.Bandwidth(path).Quota
	if c := w.status(path); held > 200*ms || c.Limit != limit || c.Quota.Original != limit || c.Quota.InForce != held ||
		c.Quota.Requested != held || c.Quota.Changed {
		w.t.Errorf("%s holds %v, limit %v, %+v; want it suppressed, with a limit of %v", path, held, c.Limit, c.Quota,
			limit)
	}
}

// TestSuppressionOutranksBandwidth: bandwidth writes nothing into a quota that suppression claims, whatever is asked of
// it, be the limit declared or not. A policy that restores everything does not restore it.
func TestSuppressionOutranksBandwidth(t *testing.T) {
	for name, d := range map[string]*workload.Declared{"declared": declared(400 * ms), "not declared": nil} {
		t.Run(name, func(t *testing.T) {
			w := suppressed(t, d)
			before := len(w.kernel.Writes())
			for _, p := range []strategy.Policy{strategy.None, strategy.CFSQuotaBurstOnly, strategy.Auto} {
				w.policy(p)
				w.run(4 * time.Second)
				w.wantSuppressed("/batch", 400*ms)
			}
			for _, x := range w.kernel.Writes()[before:] {
				if us, err := strconv.Atoi(strings.TrimSpace(x.Data)); x.Name == "cpu/batch/cpu.cfs_quota_us" &&
					(err != nil || us < 0 || us > 200_000) {
					t.Errorf("written: %+v", x)
				}
			}
			w.wantProblem("")
		})
	}
}

// TestPauseOutranksSuppression: who holds a group at its limit, or is about to write another one, finds the limit at
// once, and afterwards the group is bounded again.
func TestPauseOutranksSuppression(t *testing.T) {
	for name, c := range map[string]struct {
		free func(*world) error
		most time.Duration
	}{
		"pause": {func(w *world) error { return w.agent.Pause(w.t.Context(), "/batch", 3*time.Second) },
			3 * time.Second},
		"release": {func(w *world) error {
			_, err := w.agent.Release(w.t.Context(), "/batch", 3*time.Second)
			return err
		}, 3 * time.Second},
		"resize": {func(w *world) error {
			if !w.agent.PrepareResize("/batch", cpu.Bandwidth{Quota: 300 * ms, Period: 100 * ms}) {
				w.t.Error("there was nothing to put back")
			}
			return nil
		}, resizeFor},
	} {
		t.Run(name, func(t *testing.T) {
			w := suppressed(t, nil)
			w.agent.Tick(w.kernel.Now())
			w.kernel.Advance(100 * ms) // it is no time for a look
			if err := c.free(w); err != nil {
				t.Fatal(err)
			}
			w.want("/batch", 400*ms, 0)
			w.run(c.most - 500*ms)
			w.want("/batch", 400*ms, 0)
			w.wantProblem("")
			w.run(3 * time.Second)
			w.wantSuppressed("/batch", 400*ms)
		})
	}
}

// TestExclusiveCPUsOutrankSuppression: a group with exclusive CPUs has no quota, also while offline work is suppressed.
func TestExclusiveCPUsOutrankSuppression(t *testing.T) {
	w := suppressed(t, nil)
	w.agent.share = func(group string) reserve.Share { return reserve.Share{Unlimited: group == "/batch"} }
	w.run(3 * time.Second)
	w.want("/batch", cpu.Unlimited, 0)
	w.agent.share = w.agent.cpus.Share
	w.run(5 * time.Second)
	w.wantSuppressed("/batch", 400*ms)
}

// TestResizeOfASuppressedGroup: what its owner declares and writes meanwhile is the limit, bounds the group if it is
// the lower one, and stands in the end.
func TestResizeOfASuppressedGroup(t *testing.T) {
	for _, limit := range []time.Duration{50 * ms, 300 * ms, 800 * ms} {
		w := suppressed(t, declared(400*ms))
		w.limit("/batch", limit)
		w.declare("/batch", declared(limit))
		w.run(5 * time.Second)
		w.wantSuppressed("/batch", limit)
		if got := w.kernel.Bandwidth("/batch").Quota; limit == 50*ms && got != limit {
			t.Errorf("bounded to %v by a limit of %v", got, limit)
		}
		w.wantProblem("")
		if err := w.agent.stop(); err != nil {
			t.Fatal(err)
		}
		w.want("/batch", limit, 0)
	}
}

// TestResetOfASuppressedGroup: the owner's value is seen and answered within seconds,
// also where bandwidth reads the file seldom.
func TestResetOfASuppressedGroup(t *testing.T) {
	w := suppressed(t, nil)
	w.subscribes(true)
	// it may burst, and stands back all the same
	w.alter("/batch", func(c *workload.Container) { c.Class = workload.ClassLS })
	for wait := time.Duration(0); wait < 2*time.Second; wait += 200 * ms {
		w.run(20*time.Second + wait)
		w.limit("/batch", 400*ms)
		w.run(4500 * ms)
		w.wantSuppressed("/batch", 400*ms)
	}
}

// TestResizeAfterAReset: the owner puts its limit back and then writes another one, which nobody declares. Whenever it
// does, and whoever sees it first, that is what the file holds in the end, and nothing that would have to be put back.
func TestResizeAfterAReset(t *testing.T) {
	for _, limit := range []time.Duration{300 * ms, 50 * ms} { // above and below what the group is bounded to
		for wait := time.Duration(0); wait < 2*time.Second; wait += 100 * ms {
			w := suppressed(t, nil)
			w.limit("/batch", 400*ms)
			w.run(wait)
			w.limit("/batch", limit)
			w.run(5 * time.Second)
			for _, r := range w.agent.Writer.Restore(nil, false) {
				if r.Outcome != plan.Applied {
					t.Errorf("%v after %v: %+v", limit, wait, r)
				}
			}
			w.want("/batch", limit, 0)
		}
	}
}

// TestForeignValueInASuppressedGroup: it is told, once, and stays.
func TestForeignValueInASuppressedGroup(t *testing.T) {
	w := suppressed(t, declared(400*ms))
	var told []string
	w.agent.Foreign = func(group, _ string) { told = append(told, group) }
	w.limit("/batch", 77*ms)
	w.run(10 * time.Second)
	w.want("/batch", 77*ms, 0)
	w.wantProblem("/batch: another program set the quota to 77ms")
	if !slices.Equal(told, []string{"/batch"}) {
		t.Errorf("told of %v", told)
	}
}

// TestRefusedEndOfSuppression: what the kernel refuses to take back when suppression ends stays suppression's,
// which tries again.
func TestRefusedEndOfSuppression(t *testing.T) {
	w := suppressed(t, nil)
	refuse := w.kernel.Fault
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && name == "cpu/batch/cpu.cfs_quota_us" {
			return syscall.EINVAL
		}
		return nil
	}
	w.kernel.SetLoad("/batch", sim.Load{})
	w.run(15 * time.Second)
	if c := w.agent.Status().Colocation; len(c.Knobs) != 2 || c.InForce() {
		t.Errorf("%+v", c.Knobs)
	}
	w.wantProblem("/batch: quota: refused")
	w.kernel.Fault = refuse
	w.run(time.Minute)
	w.want("/batch", 400*ms, 0)
	w.wantProblem("")
	if c := w.agent.Status().Colocation; len(c.Knobs) != 1 || !c.InForce() {
		t.Errorf("%+v", c.Knobs)
	}
}

// TestInForceTellsOfTheLedger: the status has the knobs of suppression beside those of the mechanism.
func TestInForceTellsOfTheLedger(t *testing.T) {
	w := suppressed(t, nil)
	var got []plan.Knob
	for _, k := range w.agent.Status().Colocation.Knobs {
		if got = append(got, k.Knob); !k.InForce || k.Cgroup != "/batch" || k.Have != k.Want || k.Since.IsZero() {
			t.Errorf("%+v", k)
		}
		if k.Knob == plan.Quota && k.Original != "400ms" {
			t.Errorf("%+v", k)
		}
	}
	if !slices.Equal(got, []plan.Knob{plan.Idle, plan.Quota}) {
		t.Errorf("%v", got)
	}
}

// TestSuppressedGroupsAreRead: that suppression reads the quota of a group does not keep
// bandwidth from reading the rest.
func TestSuppressedGroupsAreRead(t *testing.T) {
	w := suppressed(t, nil)
	g := w.agent.groups[w.id("/batch")]
	g.Idle = false
	w.run(5 * time.Second)
	if !g.Idle {
		t.Error("its cpu.idle was not read for 5 s")
	}
}
