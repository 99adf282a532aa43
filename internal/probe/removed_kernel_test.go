package probe

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// The use of a group without a quota belongs to no period: neither to the period in which it gets one again, nor to the
// busiest. The load stays on one CPU: the use of a CPU that it has left is counted when it comes back (bpf/queue.h).
func TestQuotaRemoved(t *testing.T) {
	machine := time.Duration(possible(t))
	for _, c := range []struct {
		name          string
		sleeps        bool // when the quota is removed, so that no timer runs that would show it
		quota, period time.Duration
		used          time.Duration // without a quota
		most          time.Duration // that a period may come to
	}{
		// Three times what its CPU has in a period: where a virtual machine gets no CPU, a period's end is late.
		{"while it runs", false, 40 * ms, 500 * ms, 3 * time.Second, 1500 * ms},
		{"while it sleeps", true, 10 * ms, 50 * ms, 2 * machine * 50 * ms, machine * 75 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, Options{Use: true})
			g := cgrouptest.New(t)
			g.Prevail()
			limit(t, g, c.quota, c.period)
			watch(t, p, g)
			spin := func() *cgrouptest.Process {
				load := g.Start(shellLoop)
				cgrouptest.Pin(t, 0, load)
				return load
			}
			load := spin()
			within(t, 20*time.Second, "a period is over", func() bool { return totals(t, p, g).PeriodEnd > 0 })
			if c.sleeps {
				load.Stop()
				timerStopped(t, p, g)
			}
			g.Limit(cpu.Unlimited)
			if c.sleeps {
				spin()
			}
			before := usage(t, g) // what it used elsewhere, before it was pinned, is not counted
			within(t, 60*time.Second, "it has used much", func() bool { return usage(t, g)-before >= c.used })
			throttled := totals(t, p, g).Begins
			limit(t, g, c.quota, c.period)
			within(t, 20*time.Second, "periods are over again",
				func() bool { return totals(t, p, g).Begins >= throttled+3 })
			got := totals(t, p, g)
			if got.Peak == 0 || got.Peak > c.most || got.PeriodEnd == 0 || got.Sum < c.used {
				t.Errorf("%v without a quota, %v in the busiest period: %+v", usage(t, g)-before, got.Peak, got)
			}
		})
	}
}

// A queue that a program kept while its group was being forgotten is forgotten with the group the next time.
func TestLateQueueIsForgotten(t *testing.T) {
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	limit(t, g, 20*ms, 100*ms)
	key := kernelQueueKey{Group: inode(t, g), Cpu: 0}
	kept := func() (q kernelQueue, there bool) {
		t.Helper()
		err := p.objects.Queues.Lookup(key, &q)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Fatal(err)
		}
		return q, err == nil
	}
	watch(t, p, g)
	spinner := g.Spin(1)[0]
	cgrouptest.Pin(t, 0, spinner)
	within(t, 20*time.Second, "it runs on CPU 0", func() bool { _, there := kept(); return there })
	late, _ := kept()
	watch(t, p)
	if err := p.objects.Queues.Put(key, late); err != nil {
		t.Fatal(err)
	}
	watch(t, p, g)
	within(t, 20*time.Second, "it runs there again", func() bool { q, _ := kept(); return q != late })
	spinner.Stop()
	watch(t, p)
	if q, there := kept(); there {
		t.Errorf("the queue is still there: %+v", q)
	}
}

// timerStopped waits until the timer of an idle group has stopped: there was no expiry for many periods.
func timerStopped(t *testing.T, p *Probe, g *cgrouptest.Group) {
	t.Helper()
	last, since := totals(t, p, g).PeriodEnd, Monotonic()
	within(t, 20*time.Second, "its timer has stopped", func() bool {
		if end := totals(t, p, g).PeriodEnd; end != last {
			last, since = end, Monotonic()
		}
		return Monotonic()-since > 500*ms
	})
}

// usage is the CPU time of a group, as the kernel's file says it.
func usage(t *testing.T, g *cgrouptest.Group) time.Duration {
	t.Helper()
	used, err := g.Tree().Usage(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// possible is how many CPUs the machine may have.
func possible(t *testing.T) int {
	t.Helper()
	n, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
