package scx

import (
	"math/bits"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/probe"
)

func group(t *testing.T, s *Scheduler, g *cgrouptest.Group) Group {
	t.Helper()
	got, err := s.Group(inode(t, g))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// binds says whether a quota has bound a group since then, over 20 periods and more: it used at most a quota more than
// its periods have, and all of it in those that ended throttled. An overrun that a late tick has found is paid for
// later: the twentieth that is allowed is that of the long run.
func binds(t *testing.T, s *Scheduler, g *cgrouptest.Group, since Group, quota time.Duration) bool {
	t.Helper()
	now := group(t, s, g)
	used, periods, throttled := now.Used-since.Used, now.Periods-since.Periods, now.Throttled-since.Throttled
	return periods >= 20 && throttled >= 10 && used <= quota*time.Duration(periods+1)*105/100 &&
		used >= quota*time.Duration(throttled)*95/100
}

// free waits until a group has used something without being throttled, as none can that has a small quota.
func free(t *testing.T, s *Scheduler, g *cgrouptest.Group) {
	t.Helper()
	before := group(t, s, g)
	within(t, 20*time.Second, "a group without a limit uses 0.5 s",
		func() bool { return group(t, s, g).Used > before.Used+500*ms })
	if after := group(t, s, g); after.Begins != before.Begins || after.Quota != 0 {
		t.Errorf("without a limit: %+v, and then %+v", before, after)
	}
}

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
	within(t, time.Minute, "both limits bind", func() bool {
		return binds(t, s, online, Group{}, 30*ms) && binds(t, s, offline, Group{}, 20*ms)
	})
	for name, g := range map[string]*cgrouptest.Group{"online": online, "offline": offline} {
		c := group(t, s, g)
		t.Logf("%s: %+v", name, c)
		if c.Offline != (name == "offline") || c.Periods < c.Throttled || c.Begins < c.Throttled/2 ||
			c.Wall < 10*ms*time.Duration(c.Begins-1) || c.Period != 100*ms || c.Bursts != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	online.Limit(cpu.Unlimited)
	free(t, s, online)
	online.Limit(20 * ms)
	before := group(t, s, online)
	within(t, time.Minute, "the new limit binds", func() bool { return binds(t, s, online, before, 20*ms) })
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
	before, parts := group(t, s, pod), count(t, s, a, b)
	within(t, time.Minute, "the pod's limit binds", func() bool {
		used := count(t, s, a, b).since(parts).groups
		return binds(t, s, pod, before, 40*ms) && used[0] > used[1]/2 && used[1] > used[0]/2
	})
	if err := s.Forget(inode(t, pod)); err != nil {
		t.Fatal(err)
	}
	set(t, s, a, Setting{Limit: &cpu.Bandwidth{Quota: 10 * ms, Period: 50 * ms}})
	before = group(t, s, a)
	free(t, s, b)
	within(t, time.Minute, "the container's limit binds", func() bool { return binds(t, s, a, before, 10*ms) })
	set(t, s, a, Setting{Limit: &cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}})
	free(t, s, a)
}

// Begin and end of each throttle are reported, in the records of the probe, and the totals are the sums of the records.
func TestThrottlesAreReported(t *testing.T) {
	s := open(t, Options{})
	g := cgrouptest.New(t)
	set(t, s, g, Setting{Limit: &cpu.Bandwidth{Quota: 20 * ms, Period: 100 * ms}})
	list := g.Spin(2)
	id := inode(t, g)
	within(t, 30*time.Second, "ten throttles", func() bool { return group(t, s, g).Begins >= 10 })
	for _, p := range list {
		p.Stop()
	}
	within(t, 10*time.Second, "the last throttle is over", func() bool { return !group(t, s, g).Standing })
	events, err := s.Changes()
	if err != nil {
		t.Fatal(err)
	}
	var begins, ends int64
	var wall, since time.Duration
	var lengths [probe.Buckets]int64
	for _, e := range events {
		switch {
		case e.Group != id:
		case e.Kind == probe.Begin:
			begins++
			since = e.At
			if f := e.Facts; e.Since != e.At || f.Quota != 20*ms || f.Period != 100*ms || f.Burst != 0 ||
				f.Runtime != 0 || f.Used < f.Snap || f.Expires == 0 {
				t.Errorf("%+v", e)
			}
		case e.Kind == probe.End:
			ends++
			wall += e.At - e.Since
			lengths[max(bits.Len64(uint64((e.At-e.Since)/time.Microsecond)), 1)-1]++
			if e.Since != since || e.At < e.Since {
				t.Errorf("an end of what began %v: %+v", since, e)
			}
		}
	}
	got, err := s.Throttles(id)
	want := probe.Totals{Begins: begins, Ends: ends, Wall: wall, Lengths: lengths, Used: got.Used,
		PeriodEnd: got.PeriodEnd, Peak: got.Peak, Sum: got.Sum}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || begins < 10 || begins != ends {
		t.Errorf("%d begins and %d ends were reported, %v\n%s", begins, ends, err, diff)
	}
	if got.Peak < 20*ms || got.Used > got.Peak || got.Sum < 200*ms || got.PeriodEnd == 0 {
		t.Errorf("%+v", got)
	}
	if again, err := s.Changes(); len(again) > 0 && again[0].Group == id || err != nil {
		t.Errorf("reported twice: %+v, %v", again, err)
	}
}

// Saved quota is a burst: after an idle time a group may run beyond its quota once, and that is counted.
func TestBurst(t *testing.T) {
	s := open(t, Options{})
	g := cgrouptest.New(t)
	saved := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 50 * ms}
	set(t, s, g, Setting{Limit: &saved})
	g.Start("for i in 1 2 3 4 5; do sleep 0.5; j=0; while [ $j -lt " + strconv.Itoa(rounds(t)) +
		" ]; do j=$((j+1)); done; done")
	within(t, 20*time.Second, "bursts", func() bool { return group(t, s, g).Bursts >= 2 })
	c := group(t, s, g)
	if c.BurstTime <= 0 || c.BurstTime > time.Duration(c.Bursts)*saved.Burst {
		t.Errorf("%+v", c)
	}
	t.Logf("%+v", c)
}

// An idle group saves its whole burst again, as with the kernel's own bandwidth: each job that needs most of the burst
// runs without a throttle.
func TestBurstIsSavedAgain(t *testing.T) {
	s := open(t, Options{})
	g := cgrouptest.New(t)
	set(t, s, g, Setting{Limit: &cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 50 * ms}})
	p := g.Spin(1)[0]
	send := func(to syscall.Signal) {
		if err := syscall.Kill(p.PID(), to); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGSTOP)
	time.Sleep(500 * ms)
	first := group(t, s, g)
	const jobs = 5
	for range jobs {
		before := group(t, s, g)
		send(syscall.SIGCONT)
		for end := time.Now().Add(10 * time.Second); group(t, s, g).Used < before.Used+75*ms &&
			time.Now().Before(end); {
			time.Sleep(ms)
		}
		send(syscall.SIGSTOP)
		time.Sleep(500 * ms)
	}
	if c := group(t, s, g); c.Begins != first.Begins || c.Bursts-first.Bursts != jobs {
		t.Errorf("%d jobs of %v: %d throttles, %d bursts", jobs, (c.Used-first.Used)/jobs, c.Begins-first.Begins,
			c.Bursts-first.Bursts)
	}
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
