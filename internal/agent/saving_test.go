package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
)

// TestSavedOnce: of two refills in one period the later one saves nothing that the first did not, and what the group stands
// still after them is not saved. Each refill is taken to have had effect: one of a throttle at once, one ahead of it later.
func TestSavedOnce(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	start := w.kernel.Now()
	for _, c := range []struct {
		at, expires time.Duration // 0: nothing is heard
		ahead       bool
		quota       time.Duration // another one than in the file: it is not refilled
		saved       time.Duration
	}{
		{20 * ms, 100 * ms, false, 50 * ms, 0},
		{40 * ms, 100 * ms, false, 50 * ms, 20 * ms},
		{60 * ms, 0, false, 50 * ms, 40 * ms},
		{70 * ms, 100 * ms, false, 40 * ms, 50 * ms},
		{110 * ms, 0, false, 50 * ms, 50 * ms},
		{130 * ms, 200 * ms, true, 50 * ms, 50 * ms},
		{150 * ms, 200 * ms, true, 50 * ms, 70 * ms},
		{250 * ms, 0, false, 50 * ms, 120 * ms},
	} {
		now := start.Add(c.at)
		w.kernel.Advance(now.Sub(w.kernel.Now()))
		g := w.agent.groups[w.id("/a")]
		judged := func(done bool) {
			if done && g.refill != nil {
				w.agent.effect(now, g, policy.Effective)
			}
		}
		judged(true)
		if c.expires > 0 {
			w.agent.AnswerThrottles([]policy.Throttle{{Inode: w.id("/a").Inode, At: now, Bandwidth: cpu.Bandwidth{Quota: c.quota, Period: 100 * ms},
				Handed: 50 * ms, Expires: start.Add(c.expires), Ahead: c.ahead}})
			judged(!c.ahead)
		}
		if got := w.agent.status(now).Containers[0].Totals.WallSaved; got != c.saved {
			t.Errorf("at %v: saved %v, want %v", c.at, got, c.saved)
		}
	}
}

// TestToldOfLate: what a refill ahead of a throttle saved is known at its period's end. It counts from when the throttle
// would have begun, and not twice.
func TestToldOfLate(t *testing.T) {
	t0 := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	var s saving
	sum := s.begin(at(20*ms), at(100*ms))
	sum += s.by(at(70 * ms))
	sum += s.begin(at(50*ms), at(100*ms)) // of a later refill, which is judged at 70 ms
	sum += s.by(at(200 * ms))
	if sum != 80*ms {
		t.Errorf("saved %v, want 80ms", sum)
	}
}
