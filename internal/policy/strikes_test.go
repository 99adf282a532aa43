package policy

import (
	"testing"
	"time"

	"plimsoll/internal/strategy"
)

// TestChronicLeavesWritesToOthers: who is throttled all the time is rescued only while writes are plenty.
func TestChronicLeavesWritesToOthers(t *testing.T) {
	var s strikes
	end := t0
	for range 601 {
		end = end.Add(100 * ms)
		s.hit(end, 100*ms)
		s.hit(end.Add(time.Microsecond), 100*ms) // the same period
	}
	if !s.chronic(end) || s.chronic(end.Add(2*time.Minute)) {
		t.Errorf("chronic %v after a minute of strikes, %v two minutes later", s.chronic(end), s.chronic(end.Add(2*time.Minute)))
	}
	for i := range 1400 { // every second period, looked for at times of its own
		end = end.Add(150 * ms)
		s.hit(end, 100*ms)
		if now := end.Add(450 * ms); !s.chronic(now) {
			t.Fatalf("the verdict lapses after throttle %d", i)
		}
	}
	half := Purse{Left: 5, Full: 10}
	if half.affords(true) || !half.affords(false) {
		t.Error("with half of the writes left: the chronic wait, others do not")
	}
	var rare strikes
	for i := range 300 {
		rare.hit(t0.Add(time.Duration(i)*300*ms), 100*ms)
		rare.hit(t0.Add(time.Duration(i)*300*ms), 100*ms)
	}
	if rare.chronic(t0.Add(90 * time.Second)) {
		t.Error("one period in three is not chronic")
	}
}

// TestForeseenIsNotThrottled: a minute of throttles that were foreseen and did not begin says that demand lasts, not that
// the group stood still.
func TestForeseenIsNotThrottled(t *testing.T) {
	for name, c := range map[string]struct {
		foreseen, begins bool
		want             bool
	}{
		"foreseen alone":     {true, false, false},
		"begun alone":        {false, true, true},
		"foreseen and begun": {true, true, true},
	} {
		r := newRescued(strategy.CFSQuotaBurstOnly)
		heard := r.heard
		var u *unit
		for range 650 {
			u = &unit{Group: r.group, m: r.state.groups[r.group.ID]}
			heard.Expires, heard.At = heard.Expires.Add(100*ms), heard.At.Add(100*ms)
			if c.foreseen {
				heard.Ahead = true
				u.hear(heard)
			}
			if c.begins {
				heard.Ahead = false
				u.hear(heard)
			}
		}
		s := &u.m.strikes
		if !s.lasting(heard.At, 100*ms) || s.chronic(heard.At) != c.want {
			t.Errorf("%s: lasting %v, chronic %v, want %v", name, s.lasting(heard.At, 100*ms), s.chronic(heard.At), c.want)
		}
	}
}
