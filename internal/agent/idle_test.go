package agent

import (
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// reads counts the readings of the files of groups below a path from now on, by the turn: the most in one, and all.
func (w *world) reads(below string) (most, all *int) {
	most, all = new(int), new(int)
	turn, inTurn := time.Time{}, 0
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op != "read" || !strings.HasPrefix(name, "cpu"+below) && !strings.HasPrefix(name, "cpuacct"+below) {
			return nil
		}
		if w.agent.record.LastTurn() != turn {
			turn, inTurn = w.agent.record.LastTurn(), 0
		}
		inTurn++
		*all++
		*most = max(*most, inTurn)
		return nil
	}
	return most, all
}

// idlePods makes pods with one idle container each.
func (w *world) idlePods(pods int, limit time.Duration) {
	w.t.Helper()
	for i := range pods {
		name := fmt.Sprintf("/idle/pod%d", i)
		pod := workload.Pod{ID: w.group(name, limit), Name: name}
		c := w.container(path.Join(name, "c"), 50*ms, sim.Load{})
		c.Strategy.Policy = strategy.Auto
		w.kernel.SetTasks(c.Path, 1)
		pod.Containers = append(pod.Containers, c)
		w.place.pods = append(w.place.pods, pod)
	}
}

// TestIdlePodsCostFewReads: where the kernel tells of throttles, what is idle is read the less often the longer it is
// idle: in the end all files of a pod and its container once in observe.IdleAtMost, and the pod's counters once more.
func TestIdlePodsCostFewReads(t *testing.T) {
	const pods = 25
	for name, limit := range map[string]time.Duration{"limited pods": 50 * ms, "unlimited pods": -time.Microsecond} {
		w, _ := subscribed(t, true)
		w.kernel.AddGroup("/idle")
		w.idlePods(pods, limit)
		w.run(15 * time.Minute)
		_, all := w.reads("/idle/")
		w.run(time.Hour)
		if sweeps := int(time.Hour / observe.IdleAtMost); *all < pods*sweeps*6 || *all > pods*sweeps*16 {
			t.Errorf("%s: %d reads in an hour", name, *all)
		}
	}
}

// TestPodsInUseAreRead: a pod that uses CPU, and never throttles, is read as often as ever.
func TestPodsInUseAreRead(t *testing.T) {
	w, _ := subscribed(t, true)
	w.kernel.AddGroup("/idle")
	w.idlePods(1, 50*ms)
	w.kernel.SetLoad("/idle/pod0/c", sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
	w.run(5 * time.Minute)
	_, all := w.reads("/idle/")
	before := w.booked("/idle/pod0/c").Usage
	w.run(2 * time.Minute)
	after := w.booked("/idle/pod0/c").Usage
	if *all < 8 || after-before < 500*ms {
		t.Errorf("%d reads, and %v of 1.2 s in the books", *all, after-before)
	}
}

// TestIdlePodsAreReported that have begun to use CPU, for the price of one reading for each pod that has not.
func TestIdlePodsAreReported(t *testing.T) {
	for name, limit := range map[string]time.Duration{"limited pods": 50 * ms, "unlimited pods": -time.Microsecond} {
		w, _ := subscribed(t, true)
		w.kernel.AddGroup("/idle")
		w.idlePods(100, limit)
		w.run(10 * time.Minute)
		w.kernel.SetLoad("/idle/pod7/c", sim.Periodic(time.Second, sim.Fixed(20*ms), 1))
		w.run(1500 * ms)
		_, all := w.reads("/idle/")
		if used := w.status("/idle/pod7/c").Totals.Usage; used != 40*ms {
			t.Errorf("%s: %v in the books, want 40ms", name, used)
		}
		if *all < 100 || *all > 120 {
			t.Errorf("%s: %d reads for 100 pods of which 1 has begun to use CPU", name, *all)
		}
	}
}

// TestIdlePodsWhileRefused: pods whose writes the kernel refuses are read when these are tried again, and not in each
// turn until then.
func TestIdlePodsWhileRefused(t *testing.T) {
	const pods = 25
	w, _ := subscribed(t, true)
	w.kernel.AddGroup("/idle")
	w.idlePods(pods, 100*ms)
	reads, tries, refuse := 0, 0, true
	w.kernel.Fault = func(op, name string, _ []byte) error {
		switch {
		case !strings.HasPrefix(name, "cpu/idle/") && !strings.HasPrefix(name, "cpuacct/idle/"):
		case op == "read":
			reads++
		case op == "write" && refuse:
			tries++
			return syscall.EINVAL
		}
		return nil
	}
	w.run(10 * time.Second)
	if tries < 4*pods {
		t.Errorf("%d writes were tried in ten seconds, want one for each pod after 0, 1, 3 and 7 s", tries)
	}
	reads, tries = 0, 0
	w.run(10 * time.Minute)
	if tries < 9*pods || tries > 2*12*pods {
		t.Errorf("%d writes were tried in ten minutes, want one or two for each pod and minute", tries)
	}
	if most := 40 * tries; reads > most { // each try compares and reads back, and its pod is read
		t.Errorf("%d reads for %d tries", reads, tries)
	}
	refuse = false
	w.run(time.Minute + 2*observe.IdleEvery)
	for i := range pods {
		if c := fmt.Sprintf("/idle/pod%d/c", i); w.kernel.Bandwidth(c).Burst == 0 {
			t.Errorf("%s has no burst a minute after the last refusal", c)
		}
	}
}

// TestSweepsAreSpread: idle pods that are due together are not read in one turn, for no throttle is answered meanwhile.
func TestSweepsAreSpread(t *testing.T) {
	w, _ := subscribed(t, true)
	w.kernel.AddGroup("/idle")
	w.idlePods(500, 50*ms)
	w.run(10 * time.Second)
	most, all := w.reads("/idle/")
	w.run(2 * time.Minute)
	if *all < 1000 {
		t.Fatalf("%d reads: it proves nothing", *all)
	}
	// Of a pod and its container, on v1: quota, period, burst, tasks (two for the pod), statistics and usage.
	const sweep = 32 // pods
	if limit := sweep * 13; *most > limit {
		t.Errorf("%d reads in one turn, want at most %d", *most, limit)
	}
}

// TestNothingIsAskedFor: a burst that is its owner's is not told of as if none had been asked for,
// and the kernel had one.
func TestNothingIsAskedFor(t *testing.T) {
	for name, change := range map[string]func(w *world, s *strategy.Strategy){
		"policy none": func(_ *world, s *strategy.Strategy) { s.Policy = strategy.None },
		"no limit": func(w *world, _ *strategy.Strategy) {
			if err := w.kernel.ForeignWrite("cpu/lab/a/cpu.cfs_quota_us", "-1"); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.container("/lab/a", 50*ms, sim.Periodic(50*ms, sim.Fixed(time.Millisecond), 1))
			if err := w.kernel.ForeignWrite("cpu/lab/a/cpu.cfs_burst_us", "5000"); err != nil {
				t.Fatal(err)
			}
			change(w, &c.Strategy)
			w.alone(c)
			w.run(time.Second)
			if b := w.status("/lab/a").Burst; b.Requested != 5*ms || b.InForce != 5*ms || b.Changed || b.Clamped {
				t.Errorf("%+v", b)
			}
		})
	}
}
