package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// quietPod makes /lab/pod with two idle containers a and b of half a CPU each, that quota bursts are for.
func (w *world) quietPod() {
	w.t.Helper()
	pod := workload.Pod{ID: w.group("/lab/pod", 100*ms), Name: "pod"}
	for _, name := range []string{"/lab/pod/a", "/lab/pod/b"} {
		c := w.container(name, 50*ms, sim.Load{})
		c.Strategy.Policy = strategy.CFSQuotaBurstOnly
		w.kernel.SetTasks(name, 1)
		pod.Containers = append(pod.Containers, c)
	}
	w.place.pods = append(w.place.pods, pod)
}

// readings counts the readings of cpu.stat from now on.
func (w *world) readings() (pod, containers *int) {
	pod, containers = new(int), new(int)
	w.kernel.Fault = func(op, name string, _ []byte) error {
		switch {
		case op != "read" || !strings.HasSuffix(name, "/cpu.stat"):
		case strings.HasSuffix(name, "/pod/cpu.stat"):
			*pod++
		default:
			*containers++
		}
		return nil
	}
	return pod, containers
}

// TestIdleBacksOff: while nothing runs in a pod, only the pod's own counters are read, as often as ever.
func TestIdleBacksOff(t *testing.T) {
	w := newWorld(t)
	w.quietPod()
	w.run(2 * time.Second)
	pod, containers := w.readings()
	w.run(5 * time.Second)
	if *pod < 50 || *containers != 0 {
		t.Errorf("%d readings of the pod, %d of containers in 5 s", *pod, *containers)
	}
	if n := len(w.agent.Status().Containers); n != 3 {
		t.Errorf("%d groups are known, want 3", n)
	}
	*containers = 0
	w.run(observe.PolledIdleAtMost)
	if *containers < 2 || *containers > 40 {
		t.Errorf("%d readings of containers in %v", *containers, observe.PolledIdleAtMost)
	}
}

// TestIdleAfterAScheduler: what a scheduler of ours has counted of a group stands in its reading for good, and is
// nothing that has happened to it since.
func TestIdleAfterAScheduler(t *testing.T) {
	w := newWorld(t)
	w.quietPod()
	w.run(ms)
	pod := w.id("/lab/pod").Inode
	w.agent.reader.Extra = func(group uint64) cpu.Counters {
		if group == pod {
			return cpu.Counters{Periods: 100, Bursts: 3}
		}
		return cpu.Counters{}
	}
	w.run(2 * time.Second)
	ofPod, containers := w.readings()
	w.run(5 * time.Second)
	if *ofPod < 50 || *containers != 0 {
		t.Errorf("%d readings of the pod, %d of containers in 5 s", *ofPod, *containers)
	}
}

// replace puts a new snapshot in the place of the old one, and returns the first container in it.
func (w *world) replace() *workload.Container {
	w.place.pods = slices.Clone(w.place.pods)
	w.place.pods[0].Containers = slices.Clone(w.place.pods[0].Containers)
	return &w.place.pods[0].Containers[0]
}

// TestIdleEnds: what concerns a container has it looked at in the next turn.
func TestIdleEnds(t *testing.T) {
	for name, c := range map[string]func(w *world){
		"it was written to": func(w *world) { w.place.touched = []string{"/lab/pod/a"} },
		"its configuration": func(w *world) { w.replace().Strategy.CFSQuotaBurstPercent = 200 },
		"its class":         func(w *world) { w.replace().Class = workload.ClassBE },
		"paused": func(w *world) {
			if err := w.agent.Pause(context.Background(), "/lab/pod/b", time.Hour); err != nil {
				w.t.Fatal(err)
			}
		},
		"configured": func(w *world) { w.agent.Configure(w.agent.Strategy, nil) },
		"another container": func(w *world) {
			w.replace()
			w.place.pods[0].Containers = append(w.place.pods[0].Containers,
				w.container("/lab/pod/c", 50*ms, sim.Load{}))
		},
	} {
		w := newWorld(t)
		w.quietPod()
		w.run(2 * time.Second)
		_, containers := w.readings()
		c(w)
		w.run(100 * ms)
		if *containers == 0 {
			t.Errorf("%s: no container was looked at", name)
		}
	}
}

// TestNotIdleWithoutLimit: the counters of a pod without a limit tell nothing.
func TestNotIdleWithoutLimit(t *testing.T) {
	w := newWorld(t)
	w.quietPod()
	w.run(2 * time.Second)
	if err := w.kernel.ForeignWrite("cpu/lab/pod/cpu.cfs_quota_us", "-1"); err != nil {
		t.Fatal(err)
	}
	w.place.touched = []string{"/lab/pod"}
	_, containers := w.readings()
	w.run(2 * time.Second)
	if *containers < 40 {
		t.Errorf("%d readings of two containers in 2 s", *containers)
	}
}

// TestIdleBesideOneThatVanishes: groups that were not thought of in a turn are not gone.
func TestIdleBesideOneThatVanishes(t *testing.T) {
	w := newWorld(t)
	w.quietPod()
	w.hog("/lab/hog")
	w.run(2 * time.Second)
	before := w.status("/lab/pod/a").Since
	w.kernel.RemoveGroup("/lab/hog")
	w.run(100 * ms)
	if n := len(w.agent.Status().Containers); n != 3 {
		t.Errorf("%d groups are known, want 3", n)
	}
	if since := w.status("/lab/pod/a").Since; !since.Equal(before) {
		t.Errorf("a container of the pod is known since %v, want %v", since, before)
	}
}

// TestIdleEndsWithHold: what was put back in an idle pod comes back with resume.
func TestIdleEndsWithHold(t *testing.T) {
	w := newWorld(t)
	w.quietPod()
	for i := range w.place.pods[0].Containers {
		w.place.pods[0].Containers[i].Strategy.Policy = strategy.Auto
	}
	w.run(2 * time.Second)
	w.want("/lab/pod/a", 50*ms, 50*ms)
	if _, err := w.agent.Hold(context.Background(), true, "test"); err != nil {
		t.Fatal(err)
	}
	w.want("/lab/pod/a", 50*ms, 0)
	if err := w.agent.Resume(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	w.want("/lab/pod/a", 50*ms, 50*ms)
}

// TestThrottleAfterIdle starts a load at many instants and wants the first throttled period answered within 200 ms,
// by a raise that is sized from what happened since the load began.
func TestThrottleAfterIdle(t *testing.T) {
	for offset := range 40 {
		w := newWorld(t)
		w.quietPod()
		w.run(3*time.Second + time.Duration(offset)*7*ms)
		w.kernel.SetLoad("/lab/pod/a", sim.Spin(1))
		var throttled time.Time
		for w.kernel.Bandwidth("/lab/pod/a").Quota == 50*ms {
			c, err := w.tree.Stat("/lab/pod/a")
			if err != nil {
				t.Fatal(err)
			}
			if now := w.kernel.Now(); c.Throttled > 0 && throttled.IsZero() {
				throttled = now
			} else if !throttled.IsZero() && now.Sub(throttled) > 200*ms {
				t.Fatalf("offset %d: throttled %v ago, not raised", offset, now.Sub(throttled))
			}
			w.run(2 * ms)
		}
		if got := w.kernel.Bandwidth("/lab/pod/a").Quota; got < 80*ms {
			t.Errorf("offset %d: first raised to %v, wanted is a whole CPU", offset, got)
		}
	}
}

// TestLoneContainerIdles: one that is in no pod is not decided on either while nothing happens to it, and is when it
// wants more than its limit.
func TestLoneContainerIdles(t *testing.T) {
	for _, active := range []bool{false, true} {
		w, _ := subscribed(t, true)
		w.agent.subscription.active, w.agent.subscription.ended = active, !active
		w.calm("/a", strategy.Auto)
		w.run(4 * time.Second)
		g := w.agent.groups[w.id("/a")]
		if !w.agent.reader.Skipped(g.Group) {
			t.Errorf("told %v: an idle container is not skipped: %+v", active, g)
		}
		w.kernel.SetLoad("/a", sim.Spin(2))
		w.run(time.Second)
		if c := w.status("/a"); c.Totals.Refills+c.Totals.Raises == 0 {
			t.Errorf("told %v: nothing was done for it: %s", active, c.Why)
		}
	}
}
