package runq

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// Two spinners on one CPU: whenever one runs, the other waits behind it, whatever else runs on the CPU.
func TestTwoOnOneCPU(t *testing.T) {
	p := open(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	ours, theirs := set(t, p, a, 1), set(t, p, b, 1)
	first, second := a.Spin(1)[0], b.Spin(1)[0]
	cgrouptest.Pin(t, 0, first, second)
	time.Sleep(200 * ms)
	before := pair(t, p, ours, theirs)
	got := during(t, p, time.Second, ours, theirs)
	behind := pair(t, p, ours, theirs).Behind - before.Behind
	for _, s := range got {
		if !near(s.Running+s.Waiting, s.At, 0.01) {
			t.Errorf("a thread that is always runnable wanted %v of %v", s.Running+s.Waiting, s.At)
		}
		if s.Own+s.Above+s.Self > 0 {
			t.Errorf("neither a limit nor another thread of the group is there: %+v", s)
		}
	}
	if ran := got[1].Running - got[1].Steal - got[1].IRQ; !near(behind, ran, slack()) {
		t.Errorf("waited %v behind the neighbour, which ran for %v", behind, ran)
	}
	over(t, p, ours, a, first)
	over(t, p, theirs, b, second)
}

func pair(t testing.TB, p *Probe, waiter, runner Slot) Pair {
	t.Helper()
	list, err := p.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if v.Waiter == waiter && v.Runner == runner {
			return v
		}
	}
	return Pair{}
}

// A CPU that is idle next door, where the threads are bound to this one.
func TestPhantom(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := open(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	ours, theirs := set(t, p, a, 1), set(t, p, b, 1)
	cgrouptest.Pin(t, 0, a.Spin(1)[0], b.Spin(1)[0])
	part := func() (phantom, idle float64) {
		time.Sleep(100 * ms)
		before, rested := pair(t, p, ours, theirs), idleTime(t, 1)
		time.Sleep(600 * ms)
		after := pair(t, p, ours, theirs)
		return (after.Phantom - before.Phantom).Seconds() / (after.Behind - before.Behind).Seconds(), (idleTime(t,
			1) - rested).Seconds() / 0.6
	}
	// It is judged at both ends of a wait, which are ticks of CPU 0: what CPU 1 does at such moments, for a while,
	// counts for more.
	phantom, idle := part()
	for try := 1; try < 5 && (phantom < idle-0.35 || phantom > idle+0.35); try++ {
		phantom, idle = part()
	}
	if phantom < idle-0.35 || phantom > idle+0.35 {
		t.Errorf("a CPU was idle in %.2f of the wait, and in %.2f of the time", phantom, idle)
	}
	cgrouptest.Pin(t, 1, b.Spin(1)[0])
	if phantom, idle = part(); phantom > 0.15 {
		t.Errorf("with a spinner there, a CPU was idle in %.2f of the wait, and in %.2f of the time", phantom, idle)
	}
}

// A thread throttled by its own limit, and one throttled by the limit of a group above, until the kernel counts enough
// of it.
func TestWhoseLimit(t *testing.T) {
	p := open(t, Options{})
	pod := cgrouptest.New(t)
	inner, own := pod.Child("container"), cgrouptest.New(t)
	pod.Limit(10 * ms)
	own.Limit(10 * ms)
	for _, c := range []struct {
		name    string
		group   *cgrouptest.Group
		limited *cgrouptest.Group
		mine    func(Sums) time.Duration
		other   func(Sums) time.Duration
	}{
		{"its own", own, own, func(s Sums) time.Duration { return s.Own },
			func(s Sums) time.Duration { return s.Above }},
		{"the pod's", inner, pod, func(s Sums) time.Duration { return s.Above },
			func(s Sums) time.Duration { return s.Own }},
	} {
		slot := set(t, p, c.group, 1)
		kernel, before := throttled(t, c.limited), read(t, p, slot)
		s := c.group.Spin(1)[0]
		cgrouptest.Pin(t, 0, s)
		for end := time.Now().Add(10 * time.Second); throttled(t, c.limited)-kernel < 600*ms &&
			time.Now().Before(end); {
			time.Sleep(100 * ms)
		}
		over(t, p, slot, c.group, s)
		got := read(t, p, slot).minus(before)
		kernel = throttled(t, c.limited) - kernel
		if !near(c.mine(got), kernel, slack()) || kernel < 600*ms {
			t.Errorf("%s: %v, the kernel counts %v: %+v", c.name, c.mine(got), kernel, got)
		}
		if c.other(got) > c.mine(got)/20 {
			t.Errorf("%s: %v are laid on the other limit: %+v", c.name, c.other(got), got)
		}
	}
}

// Two threads of a container on one CPU: while one runs the other waits for it.
func TestOwnThreads(t *testing.T) {
	p := open(t, Options{})
	g := cgrouptest.New(t)
	slot := set(t, p, g, 1)
	cgrouptest.Pin(t, 0, g.Spin(2)...)
	time.Sleep(200 * ms)
	got := during(t, p, time.Second, slot)[0]
	if !near(got.Running+got.Waiting, 2*got.At, 0.01) {
		t.Errorf("two threads wanted %v of %v", got.Running+got.Waiting, 2*got.At)
	}
	if !near(got.Self, got.Running-got.Steal-got.IRQ, slack()) {
		t.Errorf("they ran for %v and waited for each other for %v: %+v", got.Running, got.Self, got)
	}
}

// A thread that wakes on a CPU where another one runs waits for the slice to end.
func TestWakesBehindASlice(t *testing.T) {
	p := open(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	ours, theirs := set(t, p, a, 1), set(t, p, b, 1)
	cgrouptest.Pin(t, 0, b.Spin(1)[0])
	cmd, _, _ := cgrouptest.Dialogue(t, "nap")
	a.Move(cmd.Process.Pid)
	time.Sleep(200 * ms)
	before := pair(t, p, ours, theirs)
	time.Sleep(time.Second)
	after := pair(t, p, ours, theirs)
	behind, waking := after.Behind-before.Behind, after.Waking-before.Waking
	if waking <= behind/50 || waking > behind {
		t.Errorf("waited %v behind the spinner, %v of it for the slice that ran", behind, waking)
	}
	if spun := pair(t, p, theirs, ours); spun.Waking > spun.Behind/10 {
		t.Errorf("the spinner does not sleep, and is said to have woken: %+v", spun)
	}
}

func setClass(t testing.TB, p *Probe, g *cgrouptest.Group, class Class) Slot {
	t.Helper()
	id, err := g.Tree().Inode(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := p.Set(Group{Inode: id, Watched: true, Class: class})
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// Waits are counted by length: of two spinners on one CPU, in slices of milliseconds, and only in their class.
func TestLengthsByClass(t *testing.T) {
	p := load(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	slot := setClass(t, p, a, 2)
	set(t, p, b, 1)
	cgrouptest.Pin(t, 0, a.Spin(1)[0], b.Spin(1)[0])
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	total := func(class Class) (n int64, least time.Duration) {
		list, err := p.Lengths(class)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range list {
			n += c
			least += time.Duration(c) * time.Microsecond << i
		}
		return n, least
	}
	before := read(t, p, slot)
	n, least := total(2)
	after := read(t, p, slot)
	// A length is between its bucket's lower end and twice that; the first bucket begins at 0.
	if n < before.Waits || n > after.Waits || least > after.Waiting+time.Duration(n)*2*time.Microsecond ||
		2*least < before.explained()-ms {
		t.Errorf("%d waits of at least %v; %d to %d of %v", n, least, before.Waits, after.Waits, before.explained())
	}
	if n, _ := total(1); n != 0 {
		t.Errorf("%d waits of an unused class", n)
	}
}
