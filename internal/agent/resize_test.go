package agent

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// resized writes a limit as an owner does, and says whether the kernel takes it.
func (w *world) resized(path string, quota time.Duration) error {
	return w.kernel.ForeignWrite("cpu"+path+"/cpu.cfs_quota_us", fmt.Sprint(quota.Microseconds()))
}

// TestPrepareResize: an owner that makes a container and its pod smaller is refused, and is not when it asked before;
// afterwards the new limits have their bursts.
func TestPrepareResize(t *testing.T) {
	w := newWorld(t)
	pod := workload.Pod{ID: w.group("/pod", 100*ms), Name: "pod"}
	pod.Containers = []workload.Container{w.container("/pod/a", 50*ms,
		sim.Periodic(50*ms, sim.Fixed(time.Millisecond), 1)), w.container("/pod/b", 50*ms, sim.Spin(2))}
	w.place.pods = append(w.place.pods, pod)
	w.run(3 * time.Second)
	w.want("/pod/a", 50*ms, 50*ms)
	w.wantRaised("/pod/b", 50*ms)
	w.wantRaised("/pod", 100*ms)
	smaller := cpu.Bandwidth{Quota: 20 * ms, Period: 100 * ms}
	if w.resized("/pod/a", smaller.Quota) == nil || w.resized("/pod", 70*ms) == nil {
		t.Fatal("the kernel takes it: the scenario proves nothing")
	}

	if !w.agent.PrepareResize("/pod/a", smaller) {
		t.Error("there was nothing to put back")
	}
	w.want("/pod/a", 50*ms, 0)
	w.want("/pod/b", 50*ms, 0)
	w.want("/pod", 100*ms, 0)
	w.limit("/pod/a", smaller.Quota)
	w.run(time.Second)
	w.limit("/pod", 70*ms)
	w.run(resizeFor)
	w.run(3 * time.Second)
	w.want("/pod/a", 20*ms, 20*ms)
	w.wantRaised("/pod/b", 50*ms)
	w.wantProblem("")
}

// TestPrepareResizeInAScope: an owner names the scope of a container whose limit is that of crun's group in it.
func TestPrepareResizeInAScope(t *testing.T) {
	w := newWorld(t)
	w.kernel.AddGroup("/c.scope")
	w.place.pods = append(w.place.pods,
		workload.Pod{Containers: []workload.Container{w.container("/c.scope/container", 50*ms, sim.Spin(2))}})
	w.run(3 * time.Second)
	w.wantRaised("/c.scope/container", 50*ms)
	if !w.agent.PrepareResize("/c.scope", cpu.Bandwidth{Quota: 20 * ms, Period: 100 * ms}) {
		t.Error("there was nothing to put back")
	}
	w.want("/c.scope/container", 50*ms, 0)
}

// TestPrepareResizeOfNothing: where no limit changes, or nobody is known, nothing is touched.
func TestPrepareResizeOfNothing(t *testing.T) {
	w := raised(t)
	writes := w.ours()
	if w.agent.PrepareResize("/lab/a", cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}) ||
		w.agent.PrepareResize("/lab/b", cpu.Bandwidth{Quota: 10 * ms, Period: 100 * ms}) {
		t.Error("something was put back")
	}
	if got := w.ours(); got != writes {
		t.Errorf("%d writes", got-writes)
	}
}

// TestBurstComesBackInAResize: an owner's write of the quota, which began before the burst was restored for it, puts
// the burst back. It is restored again, also at the end.
func TestBurstComesBackInAResize(t *testing.T) {
	for _, passed := range []bool{false, true} {
		w := newWorld(t)
		w.alone(w.container("/calm", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
		w.run(3 * time.Second)
		w.want("/calm", 50*ms, 50*ms)
		back := func() {
			if err := w.kernel.ForeignWrite("cpu/calm/cpu.cfs_burst_us", "50000"); err != nil {
				t.Fatal(err)
			}
		}
		if !w.agent.PrepareResize("/calm", cpu.Bandwidth{Quota: 20 * ms, Period: 100 * ms}) {
			t.Fatal("there was nothing to put back")
		}
		w.want("/calm", 50*ms, 0)
		back()
		w.run(time.Second)
		w.want("/calm", 50*ms, 0)
		w.wantProblem("")
		back() // and nobody reads the file before the end
		w.succeed(passed)
		w.want("/calm", 50*ms, 0)
	}
}
