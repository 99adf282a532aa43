package probe

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
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
