package observe

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestInStep: whenever a group was read, it is due at an instant that all have in common, and not later than
// wanted.
func TestInStep(t *testing.T) {
	r := newReader(nil, func() time.Time { return time.Unix(1000, 0) })
	for _, c := range []struct{ now, d, want time.Duration }{
		{0, LookEvery, LookEvery},
		{ms, LookEvery, LookEvery},
		{50 * ms, LookEvery, LookEvery},
		{LookEvery - leastGap + ms, LookEvery, 2 * LookEvery},
		{LookEvery, LookEvery, 2 * LookEvery},
		{LookEvery, IdleEvery, 2 * CappedEvery},
		{ms, CappedEvery, CappedEvery},
		{CappedEvery - ms, CappedEvery, 2 * CappedEvery},
	} {
		got := r.InStep(r.started.Add(c.now), c.d)
		if got := got.Sub(r.started); got != c.want {
			t.Errorf("read at %v: due at %v, want %v", c.now, got, c.want)
		}
	}
}

// TestIntervalWithoutAQuota: events report no use of a group without a quota. Where it has exclusive CPUs, the guard
// needs that use.
func TestIntervalWithoutAQuota(t *testing.T) {
	r := newReader(nil, func() time.Time { return time.Unix(1000, 0) })
	for _, c := range []struct {
		subscribed, exclusive bool
		want                  time.Duration
	}{
		{false, false, IdleEvery},
		{false, true, IdleEvery},
		{true, false, quietEvery},
		{true, true, IdleEvery},
	} {
		g := &Group{Disk: cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}, Ready: true,
			Attention: Attention{OwnCPUs: c.exclusive}}
		g.Class, r.Subscribed = workload.ClassLS, c.subscribed
		if got := r.Interval(g); got != c.want {
			t.Errorf("with events %v, exclusive CPUs %v: %v, want %v", c.subscribed, c.exclusive, got, c.want)
		}
	}
}

// TestIntervalOfALongPeriod: with throttle events nothing is missed between two readings. A poll finds a throttle at
// the next one only.
func TestIntervalOfALongPeriod(t *testing.T) {
	r := newReader(nil, func() time.Time { return time.Unix(1000, 0) })
	for _, c := range []struct {
		period     time.Duration
		subscribed bool
		want       time.Duration
	}{
		{100 * ms, true, LookEvery},
		{20 * ms, true, LookEvery},
		{250 * ms, true, 225 * ms},
		{time.Second, true, 900 * ms},
		{time.Second, false, LookEvery},
	} {
		g := &Group{Disk: cpu.Bandwidth{Quota: c.period / 2, Period: c.period}, Attention: Attention{Watched: true}}
		g.Class, g.Strategy.Policy, r.Subscribed = workload.ClassLS, strategy.Auto, c.subscribed
		if got := r.Interval(g); got != c.want {
			t.Errorf("period %v, with events %v: %v, want %v", c.period, c.subscribed, got, c.want)
		}
	}
}
