package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// declared is what the owner of a group says of its quota.
func declared(quota time.Duration) *workload.Declared {
	return &workload.Declared{Bandwidth: cpu.Bandwidth{Quota: quota, Period: 100 * ms}, Source: "spec"}
}

// onePod is a world with a pod of one container that works now and then, for its first second.
func onePod(t *testing.T, quota, ofContainer time.Duration) (*world, workload.Pod, workload.Container) {
	t.Helper()
	w := newWorld(t)
	pod := workload.Pod{ID: w.group("/pod", quota), Name: "pod", Declared: declared(quota)}
	a := w.container("/pod/a", ofContainer, sim.Periodic(50*ms, sim.Fixed(time.Millisecond), 1))
	a.Declared = declared(ofContainer)
	w.show(pod, a)
	w.run(time.Second)
	return w, pod, a
}

// show has the agent see the pod and its container from now on.
func (w *world) show(pod workload.Pod, a workload.Container) {
	pod.Containers = []workload.Container{a}
	w.place.pods = []workload.Pod{pod}
}

// resizedPod is a pod with a burst whose container was made smaller; the pod's own quota was refused, and stays.
func resizedPod(t *testing.T) *world {
	t.Helper()
	w, pod, a := onePod(t, 100*ms, 100*ms)
	w.want("/pod", 100*ms, 100*ms)

	for _, group := range []string{"/pod/a", "/pod"} {
		if w.resized(group, 40*ms) == nil {
			t.Fatalf("%s: the kernel takes it: the scenario proves nothing", group)
		}
	}
	pod.Declared, a.Declared, a.Paused = declared(40*ms), declared(40*ms), true
	w.show(pod, a)
	w.run(100 * ms)
	w.limit("/pod/a", 40*ms)
	w.run(100 * ms)
	a.Paused = false
	w.show(pod, a)
	return w
}

// TestRepairsAStalePod: its owner takes the resize for done. After a while the declared limit is written in its place,
// and nothing of ours is to be put back there.
func TestRepairsAStalePod(t *testing.T) {
	w := resizedPod(t)
	w.run(2 * time.Second)
	w.want("/pod/a", 40*ms, 40*ms)
	if got := w.kernel.Bandwidth("/pod").Quota; got != 100*ms {
		t.Fatalf("its owner was not waited for: %v", got)
	}
	w.run(3 * time.Second)
	w.want("/pod/a", 40*ms, 40*ms)
	w.want("/pod", 40*ms, 40*ms)
	w.wantProblem("")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.want("/pod/a", 40*ms, 0)
	w.want("/pod", 40*ms, 0)
}

// TestFollowsNoResize: a kubelet that makes a container larger writes the pod, then the container, and may say so
// later. What the container has above the limit that was said before is no raise of ours for the pod to follow.
func TestFollowsNoResize(t *testing.T) {
	w, pod, a := onePod(t, 30*ms, 20*ms)
	pod.Declared = declared(50 * ms)
	w.show(pod, a)
	w.limit("/pod", 50*ms)
	w.limit("/pod/a", 40*ms)
	w.run(3 * time.Second)
	if got := w.kernel.Bandwidth("/pod").Quota; got != 50*ms {
		t.Errorf("the pod has %v beside its owner's 50ms", got)
	}
	a.Declared = declared(40 * ms)
	w.show(pod, a)
	w.run(3 * time.Second)
	w.want("/pod/a", 40*ms, 40*ms)
	w.want("/pod", 50*ms, 40*ms)
}

// TestWaitsForTheOwner: what its owner writes in time is left to it, and what another one writes is left alone.
func TestWaitsForTheOwner(t *testing.T) {
	for name, quota := range map[string]time.Duration{"its owner": 40 * ms, "another one": 70 * ms} {
		t.Run(name, func(t *testing.T) {
			w := resizedPod(t)
			w.run(time.Second)
			w.limit("/pod", quota)
			w.run(10 * time.Second)
			if got := w.kernel.Bandwidth("/pod").Quota; got != quota {
				t.Errorf("%v, want %v", got, quota)
			}
		})
	}
}

// TestRepairsNothingWhileHeld: the kill switch holds for the writes of others too, and so does a retirement.
func TestRepairsNothingWhileHeld(t *testing.T) {
	for name, hold := range map[string]func(*world) error{
		"held":    func(w *world) error { return w.lever.Hold("", w.kernel.Now()) },
		"retired": func(w *world) error { _, err := w.agent.Retire(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			w := resizedPod(t)
			if err := hold(w); err != nil {
				t.Fatal(err)
			}
			w.run(10 * time.Second)
			if got := w.kernel.Bandwidth("/pod").Quota; got != 100*ms {
				t.Errorf("%v, though %s", got, name)
			}
		})
	}
}
