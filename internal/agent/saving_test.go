package agent

import (
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
)

// TestSavedOnce: of two refills in one period the later one saves nothing that the first did not, and what the group
// stands still after them is not saved. Each refill is taken to have had effect: one of a throttle at once,
// one ahead of it later.
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
			w.agent.AnswerThrottles([]bandwidth.Throttle{{Inode: w.id("/a").Inode, At: now,
				Bandwidth: cpu.Bandwidth{Quota: c.quota, Period: 100 * ms},
				Snap:      50 * ms, Expires: start.Add(c.expires), Ahead: c.ahead}})
			judged(!c.ahead)
		}
		if got := w.agent.status(nil, now).Containers[0].Totals.WallSaved; got != c.saved {
			t.Errorf("at %v: saved %v, want %v", c.at, got, c.saved)
		}
	}
}

// TestContainersCountNothing: what a group lost is what the kernel's programs count, also where somebody asks for the
// containers in between, for whom it is estimated.
func TestContainersCountNothing(t *testing.T) {
	w, _ := subscribed(t, false)
	w.hog("/a")
	for range 3 {
		w.run(5 * time.Second)
		if w.booked("/a").ThrottledWall == 0 {
			t.Fatal("no estimate: this proves nothing")
		}
		if got := w.status("/a").Totals; got.ThrottledWall != got.Events.Wall {
			t.Errorf("lost %v, counted %v", got.ThrottledWall, got.Events.Wall)
		}
	}
}
