package scx

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// cores are the first threads of the cores that have more than one.
func cores(t *testing.T) []int {
	t.Helper()
	next, err := siblings("/sys")
	if err != nil {
		t.Fatal(err)
	}
	var first []int
	for cpu, other := range next {
		if cpu < other {
			first = append(first, cpu)
		}
	}
	slices.Sort(first)
	return first
}

// expelling has offline tasks on all threads, and the scheduler that keeps them from beside all others, which expel:
// also the machine's own.
func expelling(t *testing.T, o Options) (s *Scheduler, first []int, online, offline *cgrouptest.Group) {
	t.Helper()
	need(t)
	if first = cores(t); len(first) == 0 {
		cgrouptest.Elsewhere(t, vm, "the cores have one thread each")
	}
	s = open(t, o)
	online, offline = cgrouptest.New(t), cgrouptest.New(t)
	set(t, s, offline, Setting{Class: Offline})
	expel(t, s, online, true)
	offline.Spin(2 * len(first))
	return s, first, online, offline
}

// expel makes every group that is not offline expel, or none.
func expel(t *testing.T, s *Scheduler, g *cgrouptest.Group, on bool) {
	t.Helper()
	root, err := g.Tree().Inode("/")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set(root, Setting{Class: Online, Expels: on}); err != nil {
		t.Fatal(err)
	}
}

// With an online task on each core, no offline task runs beside one but by the floor. Those that do not expel leave the
// other threads to the offline ones, and when they go, all threads are the offline ones' again.
func TestExpel(t *testing.T) {
	s, first, online, offline := expelling(t, Options{Expel: true})
	list := online.Spin(len(first))
	for i, p := range list {
		cgrouptest.Pin(t, first[i], p)
	}
	time.Sleep(500 * ms)
	before := count(t, s, online, offline)
	var got counted
	within(t, time.Minute, "the floor is given", func() bool {
		got = count(t, s, online, offline).since(before)
		return got.Floors >= 12
	})
	t.Logf("%+v, groups %v", got.Totals, got.groups)
	if other := got.Beside - got.Floor; other > got.Online/100 || got.Offline-got.Floor > got.Online/100 {
		t.Errorf("offline tasks ran %v beside online ones, and the floor was %v: %+v", got.Beside, got.Floor, got)
	}
	expel(t, s, online, false)
	within(t, 30*time.Second, "offline has the other threads", func() bool {
		before = count(t, s, offline)
		time.Sleep(500 * ms)
		got = count(t, s, offline).since(before)
		return got.Beside >= time.Duration(len(first))*got.at.Sub(before.at)*8/10
	})
	for _, p := range list {
		p.Stop()
	}
	time.Sleep(300 * ms)
	before = count(t, s, offline)
	time.Sleep(time.Second)
	got = count(t, s, offline).since(before)
	threads := time.Duration(2 * len(first))
	// The machine's own tasks are online ones.
	if t.Logf("alone %+v, groups %v", got.Totals,
		got.groups); got.groups[0]+got.Online < threads*got.at.Sub(before.at)*9/10 {
		t.Errorf("alone, offline got %+v in %v", got.Totals, got.at.Sub(before.at))
	}
}

// An online task that comes and goes beside an offline one expels it each time, and each time is counted.
func TestExpels(t *testing.T) {
	s, _, online, offline := expelling(t, Options{Expel: true})
	before := count(t, s, offline)
	online.Start("while :; do sleep 0.01; done")
	var got counted
	within(t, 30*time.Second, "50 offline tasks were expelled",
		func() bool { got = count(t, s, offline).since(before); return got.Expels >= 50 })
	if t.Logf("%+v, groups %v", got.Totals, got.groups); got.Beside > got.Offline/10 {
		t.Errorf("%v beside online ones of %v", got.Beside, got.Offline)
	}
}

// avoid keeps this process and its children off a CPU until the test ends: a task that runs there makes the CPU look
// for the next task.
func avoid(t *testing.T, cpu int) {
	t.Helper()
	var all, rest unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	rest = all
	rest.Clear(cpu)
	bind := func(to unix.CPUSet) {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range threads {
			if tid, err := strconv.Atoi(d.Name()); err != nil || unix.SchedSetaffinity(tid, &to) != nil {
				t.Fatalf("bind thread %s: %v", d.Name(), err)
			}
		}
	}
	bind(rest)
	t.Cleanup(func() { bind(all) })
}

// Offline tasks that are bound to the idle thread beside a task that expels get the floor: else the kernel's watchdog
// would end the scheduler for them (open's end finds it alive). With the rest for tasks that four CPUs serve, the last
// of 24 comes too late.
func TestExpelledAndBound(t *testing.T) {
	for _, c := range []struct {
		tasks int
		most  float64 // of the thread
	}{{16, 1. / 3}, {24, 1. / 2}} {
		t.Run(strconv.Itoa(c.tasks), func(t *testing.T) {
			s, first, online, _ := expelling(t, Options{Expel: true, Watchdog: watchdog})
			next, err := siblings("/sys")
			if err != nil {
				t.Fatal(err)
			}
			avoid(t, next[first[0]])
			bound := cgrouptest.New(t)
			set(t, s, bound, Setting{Class: Offline})
			cgrouptest.Pin(t, first[0], online.Spin(1)...)
			cgrouptest.Pin(t, next[first[0]], bound.Spin(c.tasks)...)
			before := count(t, s, bound)
			time.Sleep(4 * watchdog)
			got := count(t, s, bound).since(before)
			t.Logf("%+v, groups %v", got.Totals, got.groups)
			if share := float64(got.groups[0]) / float64(got.at.Sub(before.at)); share == 0 || share > c.most {
				t.Errorf("bound to the expelled thread: %.3f of it", share)
			}
		})
	}
}
