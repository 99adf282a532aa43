package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
)

// TestPendingResizeToOurValue: while a resize to the very value that a raise stands at is pending, that says nothing of
// whose the value is. When the resize is given up, the raise is given back; when it is confirmed,
// the value is the limit.
func TestPendingResizeToOurValue(t *testing.T) {
	for name, confirmed := range map[string]bool{"given up": false, "confirmed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.container("/web", 100*ms, sim.Spin(4))
			c.Declared = declared(100 * ms)
			w.alone(c)
			w.run(3 * time.Second)
			w.wantRaised("/web", 100*ms)
			raised := w.kernel.Bandwidth("/web").Quota
			show := func() {
				w.place.pods = nil
				w.alone(c)
			}
			c.Declared = declared(100 * ms)
			c.Declared.Next, c.Paused = cpu.Bandwidth{Quota: raised, Period: 100 * ms}, true
			show()
			w.kernel.SetLoad("/web", sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
			w.run(5 * time.Second)
			if got := w.kernel.Bandwidth("/web").Quota; got != raised {
				t.Fatalf("%v while it is pending: its owner may have written %v", got, raised)
			}
			if limit := w.status("/web").Limit; limit != 100*ms {
				t.Errorf("the limit is %v while nobody confirms another one", limit)
			}
			c.Declared, c.Paused = declared(100*ms), false
			want := 100 * ms
			if confirmed {
				c.Declared, want = declared(raised), raised
			}
			show()
			w.run(8 * time.Second)
			if got := w.kernel.Bandwidth("/web").Quota; got != want {
				t.Errorf("%v, want %v", got, want)
			}
			if err := w.agent.stop(); err != nil {
				t.Fatal(err)
			}
			w.want("/web", want, 0)
		})
	}
}

// TestLostLimitIsRepaired: a lower limit that the kernel refused because of our burst is written in its owner's place,
// whoever declared it, and stays when the agent ends.
func TestLostLimitIsRepaired(t *testing.T) {
	w := newWorld(t)
	c := w.container("/web", 100*ms, sim.Periodic(50*ms, sim.Fixed(20*ms), 1))
	c.Declared = declared(100 * ms)
	w.alone(c)
	w.run(time.Second)
	w.want("/web", 100*ms, 100*ms)
	if w.resized("/web", 40*ms) == nil {
		t.Fatal("the kernel takes it: the scenario proves nothing")
	}
	c.Declared = declared(40 * ms)
	w.place.pods = nil
	w.alone(c)
	w.run(2500 * ms)
	w.want("/web", 100*ms, 100*ms) // its owner may try again
	w.run(2 * time.Second)
	w.want("/web", 40*ms, 40*ms)
	w.wantProblem("")
	if limit := w.status("/web").Limit; limit != 40*ms {
		t.Errorf("the limit is %v", limit)
	}
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.want("/web", 40*ms, 0)
}

// TestRefusedRepairIsAProblem: what the kernel refuses is tried again, and said until it is in force.
func TestRefusedRepairIsAProblem(t *testing.T) {
	w, pod, a := onePod(t, 100*ms, 100*ms)
	c := w.group("/pod/other", 100*ms) // not managed, and on v1 in the way of a lower limit of the pod
	pod.Declared = declared(40 * ms)
	a.Declared = declared(40 * ms)
	w.show(pod, a)
	w.file("/pod/a", "cpu.cfs_burst_us", "0")
	w.run(5 * time.Second)
	w.want("/pod/a", 40*ms, 0)
	w.wantProblem("pod: refused quota to 40ms")
	if limit := w.status("/pod").Limit; limit != 40*ms {
		t.Errorf("the pod's limit is %v, whatever is in force", limit)
	}
	w.limit(c.Path, 40*ms)
	w.run(10 * time.Second)
	if got := w.kernel.Bandwidth("/pod").Quota; got != 40*ms {
		t.Errorf("not tried again: %v", got)
	}
	w.wantProblem("")
}

// TestOwnersWriteDividesTheBurst: on some kernels an owner's write of cpu.max divides our burst by 1000. What it leaves
// is ours: it is written again, and restored at the end.
func TestOwnersWriteDividesTheBurst(t *testing.T) {
	for _, limit := range []time.Duration{20 * ms, 30 * ms} { // the same again, and a resize
		w := worldOn(t, sim.Config{CPUs: 4, Version: 2, BurstFile: true, DividesBurst: true, Seed: 1})
		w.alone(w.container("/web", 20*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
		w.run(3 * time.Second)
		w.want("/web", 20*ms, 20*ms)
		w.limit("/web", limit)
		w.want("/web", limit, 20*time.Microsecond)
		w.run(3 * time.Second)
		w.want("/web", limit, limit)
		w.wantProblem("")
		w.limit("/web", limit)
		if err := w.agent.stop(); err != nil {
			t.Fatal(err)
		}
		w.want("/web", limit, 0)
	}
}
