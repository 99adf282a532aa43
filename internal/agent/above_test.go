package agent

import (
	"testing"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestAboveLimitOfPeriods: what the kernel's programs have counted above the limit in single periods counts, whatever
// the mean is, and stays when they begin anew or are heard no more.
func TestAboveLimitOfPeriods(t *testing.T) {
	w, e := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.kernel.SetLoad("/a", sim.Periodic(time.Second, sim.Exponential(ms), 1)) // else it is idle, and need not be read
	e.totals = map[uint64]report.Throttles{}
	for _, c := range []struct{ told, want time.Duration }{
		{30 * ms, 30 * ms}, {30 * ms, 30 * ms}, {50 * ms, 50 * ms},
		{5 * ms, 55 * ms}, // watched anew
		{9 * ms, 59 * ms},
	} {
		e.totals[w.id("/a").Inode] = report.Throttles{Usage: time.Second, Counted: true, Above: c.told}
		w.run(40 * time.Second)
		if got := w.status("/a").Totals.AboveLimit; got != c.want {
			t.Errorf("the programs tell %v: %v above the limit, want %v", c.told, got, c.want)
		}
	}
	w.agent.subscription.active = false
	w.run(10 * time.Second)
	if got := w.status("/a").Totals.AboveLimit; got != 59*ms {
		t.Errorf("polling: %v above the limit", got)
	}
}

// TestAboveLimitInTheMean: where the programs see no periods, or do not count them, the mean between two looks has to
// do.
func TestAboveLimitInTheMean(t *testing.T) {
	for _, usage := range []time.Duration{0, time.Second} {
		w, e := subscribed(t, true)
		w.hog("/a")
		e.totals = map[uint64]report.Throttles{w.id("/a").Inode: {Usage: usage}}
		w.run(20 * time.Second)
		if c := w.status("/a"); !c.Quota.Changed || c.Totals.AboveLimit < time.Second {
			t.Errorf("raised, and %v above the limit: %+v", c.Totals.AboveLimit, c)
		}
	}
}
