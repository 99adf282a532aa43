package policy

import (
	"testing"
	"time"

	"plimsoll/internal/strategy"
)

// TestLimitIsTooLow: a group that is throttled in most periods of a minute has a limit that is too low,
// until it is not.
func TestLimitIsTooLow(t *testing.T) {
	var s throttledPeriods
	end := t0
	for range 601 {
		end = end.Add(100 * ms)
		s.hit(end, 100*ms)
		s.hit(end.Add(time.Microsecond), 100*ms) // the same period
	}
	if !s.limitTooLow(end) || s.limitTooLow(end.Add(2*time.Minute)) {
		t.Errorf("limit too low %v after a minute of throttled periods, %v two minutes later", s.limitTooLow(end),
			s.limitTooLow(end.Add(2*time.Minute)))
	}
	for i := range 1400 { // every second period, looked for at times of its own
		end = end.Add(150 * ms)
		s.hit(end, 100*ms)
		if now := end.Add(450 * ms); !s.limitTooLow(now) {
			t.Fatalf("the verdict lapses after throttle %d", i)
		}
	}
	var rare throttledPeriods
	for i := range 300 {
		rare.hit(t0.Add(time.Duration(i)*300*ms), 100*ms)
		rare.hit(t0.Add(time.Duration(i)*300*ms), 100*ms)
	}
	if rare.limitTooLow(t0.Add(90 * time.Second)) {
		t.Error("one period in three is not a limit that is too low")
	}
}

// TestForeseenIsNotThrottled: a minute of throttles that were foreseen and did not begin says that demand lasts, not
// that the group was throttled.
func TestForeseenIsNotThrottled(t *testing.T) {
	for name, c := range map[string]struct {
		foreseen, begins bool
		want             bool
	}{
		"foreseen alone":     {true, false, false},
		"begun alone":        {false, true, true},
		"foreseen and begun": {true, true, true},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		events := r.event
		var u *candidate
		for range 650 {
			u = &candidate{Group: r.group, m: r.state.groups[r.group.ID]}
			events.Expires, events.At = events.Expires.Add(100*ms), events.At.Add(100*ms)
			if c.foreseen {
				events.Ahead = true
				u.bookThrottle(events)
			}
			if c.begins {
				events.Ahead = false
				u.bookThrottle(events)
			}
		}
		s := &u.m.throttledPeriods
		if !s.lasting(events.At, 100*ms) || s.limitTooLow(events.At) != c.want {
			t.Errorf("%s: lasting %v, limit too low %v, want %v", name, s.lasting(events.At, 100*ms),
				s.limitTooLow(events.At), c.want)
		}
	}
}

// TestDebtIsCounted: a throttle that the quota does not end for several periods counts in each of them, and no period
// twice; where it is not known which period it was, none.
func TestDebtIsCounted(t *testing.T) {
	for _, c := range []struct {
		throttled int64
		every     time.Duration
		periods   int64
	}{
		{1, 90 * ms, 1}, {2, 90 * ms, 2}, {3, 90 * ms, 3}, {1, 130 * ms, 1}, {1, 350 * ms, 1}, {2, 350 * ms, 1},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.event.UseKnown, r.event.Used = true, 150*ms // the cap: nothing is handed out
		r.answer()
		now := r.group.Reading
		for end := r.event.At.Add(time.Second); now.At.Before(end); {
			now.At = now.At.Add(c.every)
			now.Counters.Periods = 10 + int64((now.At.Sub(r.event.Expires)+100*ms)/(100*ms))
			now.Counters.Throttled = min(now.Counters.Periods-10, c.throttled)
			r.group.Reading = now
			r.state.Decide(r.input(now.At))
		}
		s := &r.state.groups[r.group.ID].throttledPeriods
		last := r.event.Expires.Add(time.Duration(c.throttled-1) * 100 * ms)
		if s.count != c.periods || s.lasting(last, 100*ms) != (c.periods >= lastingHits) {
			t.Errorf("%+v: %d throttled periods, lasting %v", c, s.count, s.lasting(last, 100*ms))
		}
	}
}
