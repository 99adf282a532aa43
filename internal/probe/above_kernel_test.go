package probe

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// A group that its limit throttles uses nothing above it, although a CPU runs on until a tick shows that its slice is
// used up: the next period pays for that.
func TestNothingAboveTheLimit(t *testing.T) {
	const throttles, slices = 30, 2 * 5 * ms // of two CPUs, which one period leaves to the next
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 20*ms, 100*ms)
	watch(t, p, g)
	g.Spin(2)
	within(t, 30*time.Second, "throttles begin", func() bool { return totals(t, p, g).Begins >= throttles })
	step, err := Tick()
	if err != nil {
		t.Fatal(err)
	}
	if got := totals(t, p, g); got.Above > 3*step+slices {
		t.Errorf("%v above a limit that stopped it %d times", got.Above, got.Begins)
	}
}

// What refills hand out is above the limit: all that was used but for a limit in each period.
func TestAboveTheLimit(t *testing.T) {
	const quota, period, each = 20 * ms, 100 * ms, 3
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, quota, period)
	watch(t, p, g)
	n := 0
	subscribe(t, p, func(Event) {
		if n++; n%each != 0 {
			g.Limit(quota)
		}
	})
	g.Spin(2)
	within(t, 20*time.Second, "a period is over", func() bool { return totals(t, p, g).PeriodEnd > 0 })
	before := totals(t, p, g)
	within(t, 30*time.Second, "many throttles", func() bool { return totals(t, p, g).Begins >= before.Begins+20*each })
	got := totals(t, p, g)
	want := got.Sum - before.Sum - (got.PeriodEnd-before.PeriodEnd)/period*quota
	above := got.Above - before.Above
	t.Logf("%v above the limit, %v in the mean", above, want)
	if want < 10*quota || above < want*3/4 || above > want*5/4 && !emulated() {
		t.Errorf("%v above the limit, used %v more than it in %v", above, want, got.PeriodEnd-before.PeriodEnd)
	}
}

// What a group used while it had no quota is in no period, also where it was idle when its quota was removed and when
// it came back, so that no timer shows either; and the first use after an idle time is.
func TestUseWithoutAQuota(t *testing.T) {
	const quota, period = 5 * ms, 10 * ms
	most := time.Duration(runtime.NumCPU()) * period
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, quota, period)
	watch(t, p, g)
	spinner := g.Spin(1)[0]
	signal := func(s unix.Signal) {
		if err := unix.Kill(spinner.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	periods := func() (n int64) {
		for _, some := range totals(t, p, g).Uses {
			n += some
		}
		return n
	}
	idle := func() {
		signal(unix.SIGSTOP)
		still, since := kernelCounters(t, g).Periods, time.Now()
		within(t, 20*time.Second, "the group's timer stops", func() bool {
			if now := kernelCounters(t, g).Periods; now != still {
				still, since = now, time.Now()
			}
			return time.Since(since) > 10*period
		})
	}
	within(t, 20*time.Second, "periods end", func() bool { return periods() > 5 })
	idle()
	before, many := totals(t, p, g), periods()
	g.Limit(cpu.Unlimited)
	signal(unix.SIGCONT)
	from := usage(t, g)
	within(t, 20*time.Second, "it runs without a limit", func() bool { return usage(t, g) > from+3*most })
	idle()
	g.Limit(quota)
	signal(unix.SIGCONT)
	within(t, 20*time.Second, "periods end", func() bool { return periods() > many+5 })
	after := totals(t, p, g)
	if after.Peak > most || after.Above > before.Above+2*most { // ticks that are late are above it, too
		t.Errorf("%v in a period, %v above the limit, of which the machine has %v in a period", after.Peak,
			after.Above-before.Above, most)
	}
	idle()
	before, many = totals(t, p, g), periods()
	signal(unix.SIGCONT)
	within(t, 20*time.Second, "periods end", func() bool { return totals(t, p, g).PeriodEnd > before.PeriodEnd })
	signal(unix.SIGSTOP)
	if periods() == many {
		t.Errorf("%v was used after an idle time, and no period has it", totals(t, p, g).Sum-before.Sum)
	}
}
