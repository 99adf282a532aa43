package scx

import (
	"strconv"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

func group(t *testing.T, s *Scheduler, g *cgrouptest.Group) Group {
	t.Helper()
	got, err := s.Group(inode(t, g))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// near says whether a share is a quota's, by less than a half above. An emulated CPU that other work holds up cannot use more.
func near(got, want float64) bool { return got > want*0.3 && got < want*1.5 }

// The kernel's limits bind, of both classes, as they were before the scheduler came and as they are changed.
func TestLimitsOfFiles(t *testing.T) {
	need(t)
	online, offline := cgrouptest.New(t), cgrouptest.New(t)
	online.Limit(30 * ms)
	s := open(t, Options{})
	set(t, s, offline, Setting{Class: Offline})
	offline.Limit(20 * ms)
	online.Spin(2)
	offline.Spin(2)
	got := used(t, 2*time.Second, online, offline)
	t.Logf("online %.3f, offline %.3f CPUs of 0.3 and 0.2", got[0], got[1])
	if !near(got[0], 0.3) || !near(got[1], 0.2) {
		t.Errorf("online %.3f, offline %.3f CPUs of 0.3 and 0.2", got[0], got[1])
	}
	for name, g := range map[string]*cgrouptest.Group{"online": online, "offline": offline} {
		c := group(t, s, g)
		if c.Offline != (name == "offline") || c.Throttled < 10 || c.Periods < c.Throttled || c.Begins < 10 || c.Wall < 500*ms || c.Period != 100*ms {
			t.Errorf("%s: %+v", name, c)
		}
	}
	online.Limit(cpu.Unlimited)
	if got := used(t, time.Second, online); got[0] < 0.6 {
		t.Errorf("without a limit: %.3f CPUs", got[0])
	}
	online.Limit(20 * ms)
	time.Sleep(300 * ms)
	if got := used(t, time.Second, online); !near(got[0], 0.2) {
		t.Errorf("limited again: %.3f CPUs of 0.2", got[0])
	}
}

// A limit of the map counts in place of the file's, and the file's does again when it is gone. A pod's limit binds what
// its containers have together.
func TestLimitsOfMap(t *testing.T) {
	s := open(t, Options{})
	pod := cgrouptest.New(t)
	a, b := pod.Child("a"), pod.Child("b")
	a.Limit(90 * ms)
	a.Spin(1)
	b.Spin(1)
	set(t, s, pod, Setting{Limit: &cpu.Bandwidth{Quota: 40 * ms, Period: 100 * ms}})
	got := used(t, 2*time.Second, a, b)
	t.Logf("of 0.4 CPUs: %.3f and %.3f", got[0], got[1])
	if !near(got[0]+got[1], 0.4) || got[0] < got[1]/3 || got[1] < got[0]/3 {
		t.Errorf("of 0.4 CPUs: %.3f and %.3f", got[0], got[1])
	}
	if err := s.Forget(inode(t, pod)); err != nil {
		t.Fatal(err)
	}
	set(t, s, a, Setting{Limit: &cpu.Bandwidth{Quota: 10 * ms, Period: 50 * ms}})
	time.Sleep(200 * ms)
	got = used(t, time.Second, a, b)
	t.Logf("of 0.2 CPUs and of the rest: %.3f and %.3f", got[0], got[1])
	if !near(got[0], 0.2) || got[1] < 0.45 {
		t.Errorf("of 0.2 CPUs and of the rest: %.3f and %.3f", got[0], got[1])
	}
	set(t, s, a, Setting{Limit: &cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}})
	if got := used(t, time.Second, a); got[0] < 0.4 {
		t.Errorf("unlimited: %.3f CPUs", got[0])
	}
}

// What was saved is a burst: a group that rested may run beyond its quota once, and that is counted.
func TestBurst(t *testing.T) {
	s := open(t, Options{})
	g := cgrouptest.New(t)
	saved := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 50 * ms}
	set(t, s, g, Setting{Limit: &saved})
	g.Start("for i in 1 2 3 4 5; do sleep 0.5; j=0; while [ $j -lt " + strconv.Itoa(rounds(t)) + " ]; do j=$((j+1)); done; done")
	within(t, 20*time.Second, "bursts", func() bool { return group(t, s, g).Bursts >= 2 })
	c := group(t, s, g)
	if c.BurstTime <= 0 || c.BurstTime > time.Duration(c.Bursts)*saved.Burst {
		t.Errorf("%+v", c)
	}
	t.Logf("%+v", c)
}

// rounds is how many times a shell counts in 120 ms or so: with half of that, too, it bursts.
func rounds(t *testing.T) int {
	t.Helper()
	begin, n := time.Now(), 2000
	g := cgrouptest.New(t)
	before, err := g.Tree().Usage(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	g.Start("j=0; while [ $j -lt " + strconv.Itoa(n) + " ]; do j=$((j+1)); done; sleep 60")
	time.Sleep(time.Second)
	after, err := g.Tree().Usage(g.Path)
	if err != nil || after == before {
		t.Fatalf("a loop took %v: %v", time.Since(begin), err)
	}
	return int(120 * ms * time.Duration(n) / (after - before))
}
