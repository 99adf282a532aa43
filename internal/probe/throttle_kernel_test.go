package probe

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// As many throttles as the kernel counts are reported, once each, on one CPU and on two. nr_throttled counts the
// periods at whose end a group is throttled: here nearly all throttles last that long. One may end before, when a CPU
// returns its runtime, and the group be throttled a second time in its period.
func TestThrottlesAreCounted(t *testing.T) {
	p := open(t, Options{})
	h := subscribe(t, p, nil)
	for name, spinners := range map[string]int{"one CPU": 1, "all CPUs": 2, "more tasks than CPUs": 5} {
		t.Run(name, func(t *testing.T) {
			// not so heavy that no tick comes while it runs, and alone: the kernel also counts a period
			g := cgrouptest.New(t)
			id := inode(t, g) // to whose end another group had the CPU, so that no task was throttled
			watch(t, p, g)
			limit(t, g, 40*ms, 100*ms)
			begin := time.Now()
			for range spinners {
				g.Start(shellLoop)
			}
			got, counters, until := between(t, p, g, 8)
			// A tick that comes late takes a whole quota in advance: then the throttle goes on through the next period.
			longer := got.Lengths[17] // 0.13 s and more
			within(t, time.Second, "all is read", func() bool { return len(h.kind(End, id)) >= int(got.Ends) })
			periods := got.Begins - repeated(t, h.of(id, until))
			// An emulated CPU may refill a queue that ran dry, at the period's end, before its task is throttled.
			unseen := counters.Throttled - longer - periods
			if periods > counters.Throttled || unseen > 0 && !emulated() || got.Ends != got.Begins || got.Dropped != 0 {
				t.Errorf("the kernel counted %d throttles: %+v", counters.Throttled, got)
			}
			list := slices.DeleteFunc(h.of(id, until), func(e Event) bool { return e.Kind != Begin })
			if len(list) != int(got.Begins) {
				t.Errorf("%d throttles, events: %s", got.Begins, in(list))
			}
			checkFacts(t, list)
			checkWall(t, got, counters, min(spinners, runtime.NumCPU()), time.Since(begin))
		})
	}
}

// between waits for so many throttles and returns the counts of the probe and of the kernel at a time without any
// throttle.
func between(t *testing.T, p *Probe, g *cgrouptest.Group, least int64) (got Totals, counters cpu.Counters,
	at time.Duration) {
	t.Helper()
	within(t, 30*time.Second, "throttles", func() bool {
		before := totals(t, p, g)
		at, counters = Monotonic(), kernelCounters(t, g)
		got = totals(t, p, g)
		return got.Since == 0 && got.Ends == got.Begins && got == before && got.Begins >= least
	})
	return got, counters, at
}

// checkFacts compares the facts of a quota of 40 ms in 100 ms with each other.
func checkFacts(t *testing.T, list []Event) {
	t.Helper()
	for _, e := range list {
		f := e.Facts
		left := f.Expires - e.At
		// The other CPU of an emulated machine may refill the pool after this one has found it empty,
		// before the program runs. Its turn lasts until the next tick of any CPU, 4 ms at most.
		refilled := emulated() && left > 96*ms
		if f.Quota != 40*ms || f.Period != 100*ms || f.Burst != 0 || f.Runtime != 0 && !refilled || left > f.Period ||
			left <= 0 && !emulated() {
			t.Errorf("facts, %v before the end of the period: %+v", left, f)
		}
		if f.Snap != NoSnap && f.Snap != 40*ms {
			t.Errorf("the pool was filled to %v", f.Snap)
		}
	}
}

// repeated counts the begins that are not the first of their period. There has to be an end before each.
func repeated(t *testing.T, list []Event) (n int64) {
	t.Helper()
	last := Event{Kind: End}
	period := int64(-1)
	for _, e := range list {
		if e.Kind == Begin && last.Kind == Begin {
			t.Errorf("a second begin in period %d, %v after the last, and no end between them", e.Facts.Periods,
				e.At-last.At)
		}
		if e.Kind == Begin {
			if e.Facts.Periods == period {
				n++
			}
			period = e.Facts.Periods
		}
		last = e
	}
	return n
}

// checkWall compares the times with the kernel's sum over CPUs, which counts a throttle once for each throttled
// CPU. The probe's time lasts until a task runs, which other groups may delay. One that it did not see would have taken
// 60 ms.
func checkWall(t *testing.T, got Totals, counters cpu.Counters, cpus int, took time.Duration) {
	t.Helper()
	var n int64
	for i, count := range got.Lengths {
		n += count
		if count > 0 && i > 17 && !emulated() { // 0.26 s
			t.Errorf("%d throttles of a period of 100 ms lasted %v", count, time.Microsecond<<i)
		}
	}
	if n != got.Ends {
		t.Errorf("%d lengths of %d throttles", n, got.Ends)
	}
	if got.Wall < counters.ThrottledTime/time.Duration(cpus)-20*ms || got.Wall > took {
		t.Errorf("throttled for %v of %v, the CPUs in sum for %v", got.Wall, took, counters.ThrottledTime)
	}
}

// A write refills the group and ends the throttle; the next one is another, also in the same period.
func TestEachRefillBeginsAnew(t *testing.T) {
	// The quota lasts for longer than a write of an emulated CPU, which unthrottles one CPU after another: one that
	// comes to a CPU when the others have used up the refill begins a throttle of its own there.
	const refills, quota = 20, 40 * ms
	for name, spinners := range map[string]int{"one CPU": 1, "all CPUs": 2} {
		t.Run(name, func(t *testing.T) {
			p := open(t, Options{})
			g := cgrouptest.New(t)
			id := inode(t, g)
			limit(t, g, quota, time.Second)
			watch(t, p, g)
			n := 0
			h := subscribe(t, p, func(Event) {
				if n++; n <= refills {
					g.Limit(quota)
				}
			})
			g.Spin(spinners)
			within(t, 20*time.Second, "all refills are used up", func() bool { return len(h.begins(id)) > refills })
			time.Sleep(100 * ms) // more would be too many
			before := Monotonic()
			got, after := totals(t, p, g), Monotonic()
			within(t, time.Second, "as many events as throttles",
				func() bool { return int64(len(h.begins(id))) >= got.Begins })
			list, later := h.begins(id), totals(t, p, g)
			periods := int((list[len(list)-1].Facts.Expires - list[0].Facts.Expires) / time.Second)
			if n := len(list); n > refills+1+periods || int64(n) > later.Begins {
				t.Errorf("%d refills and %d more periods, %d throttles, events: %s", refills, periods, later.Begins,
					in(list))
			}
			// The last one goes on to its period's end, which may come while the totals are read.
			standing, end := got.Begins-got.Ends, list[got.Begins-1].Facts.Expires
			switch {
			case standing == 0 && end < after:
			case standing == 1 && (end > before || got.Since != 0): // the period's timer may be late
			default:
				t.Errorf("%d events, the last period ends at %v, read from %v to %v: %+v", len(list), end, before,
					after, got)
			}
			if average := got.Wall / refills; average > 20*ms && !emulated() {
				t.Errorf("%d throttles stood for %v each", refills, average)
			}
		})
	}
}

// Events name the throttled group: the group itself, or one above.
func TestLevels(t *testing.T) {
	p := open(t, Options{})
	for _, c := range []struct {
		name                   string
		pod, container, nested time.Duration // limits
		beside                 bool          // the pod has a task that is not the container's
		want                   [3]bool       // the throttled groups
	}{
		{"container", 0, 20 * ms, 0, false, [3]bool{false, true, false}},
		{"pod", 20 * ms, 0, 0, false, [3]bool{true, false, false}},
		{"both, the container's is used up", 95 * ms, 20 * ms, 0, false, [3]bool{false, true, false}},
		{"both, the pod's is used up", 40 * ms, 40 * ms, 0, true, [3]bool{true, false, false}},
		{"a grandchild's own", 0, 0, 20 * ms, false, [3]bool{false, false, true}},
		{"none", 0, 0, 0, false, [3]bool{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := cgrouptest.New(t)
			pod.Prevail()
			container := pod.Child("container")
			groups := []*cgrouptest.Group{pod, container, container.Child("nested")}
			for i, quota := range []time.Duration{c.pod, c.container, c.nested} {
				period := 100 * ms
				// a limit that is not used up has room for a turn that a late timer makes long
				if !c.want[i] {
					quota, period = 10*quota, 10*period
				}
				if quota > 0 {
					limit(t, groups[i], quota, period)
				}
			}
			watch(t, p, groups...)
			if c.beside { // first, and on the same CPU: the container alone would use up its own limit
				// More than have their turn in 40 ms would starve from 6.18 on,
				// where each period queues them anew in one order.
				for i := range 4 {
					cgrouptest.Pin(t, 0, pod.Child(fmt.Sprint("beside", i)).Spin(1)[0])
				}
			}
			cgrouptest.Pin(t, 0, groups[2].Spin(1)[0])
			for i, g := range groups {
				if c.want[i] {
					within(t, 10*time.Second, g.Path+" is throttled", func() bool { return totals(t, p, g).Begins > 3 })
				}
			}
			time.Sleep(300 * ms)
			for i, g := range groups {
				if got := totals(t, p, g); !c.want[i] && got.Begins > 0 {
					t.Errorf("%s: %+v", g.Path, got)
				}
			}
		})
	}
}

// Two groups of the same limit run dry together, and one run of the programs sees both, for the only task has one CPU.
// With two tasks on two CPUs, 1 of 1,067 such pairs was of two runs: the container was dry a moment before the pod.
func TestParentFirst(t *testing.T) {
	p := open(t, Options{})
	pod := cgrouptest.New(t)
	container := pod.Child("container")
	h := subscribe(t, p, nil)
	watch(t, p, pod, container)
	cgrouptest.Pin(t, 0, container.Spin(1)[0])
	limit(t, pod, 10*ms, 50*ms)
	limit(t, container, 10*ms, 50*ms)
	var both []Event
	within(t, 20*time.Second, "both are throttled at once", func() bool {
		list := h.begins(0)
		for i := 1; i < len(list); i++ {
			if list[i].Group != list[i-1].Group && list[i].At-list[i-1].At < ms/2 && list[i].CPU == list[i-1].CPU {
				both = list[i-1 : i+1]
				return true
			}
		}
		return false
	})
	if both[0].Group != inode(t, pod) {
		t.Errorf("the pod %d is not first: %s", inode(t, pod), in(both))
	}
}

// A group that is not watched, or not any more, is not reported, although a group above or below it is.
func TestOnlyWatchedGroups(t *testing.T) {
	p := open(t, Options{})
	pod := cgrouptest.New(t)
	container := pod.Child("container")
	h := subscribe(t, p, nil)
	watch(t, p, pod)
	limit(t, container, 5*ms, 100*ms) // it is reached on a busy machine, too
	container.Spin(1)
	time.Sleep(300 * ms)
	if list := h.begins(0); len(list) > 0 {
		t.Errorf("events of a group that is not watched: %s", in(list))
	}
	if got := totals(t, p, pod); got.Begins != 0 {
		t.Errorf("the pod has no limit: %+v", got)
	}
	if _, ok := p.Totals(inode(t, container)); ok {
		t.Error("the container has totals, but is not watched")
	}
	watch(t, p, pod, container)
	within(t, 5*time.Second, "the container is reported", func() bool { return totals(t, p, container).Begins > 0 })
	watch(t, p, pod)
	if _, ok := p.Totals(inode(t, container)); ok {
		t.Error("the container still has totals")
	}
}
