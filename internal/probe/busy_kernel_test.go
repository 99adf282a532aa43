package probe

import (
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// While the end of a period is accounted on a CPU, no other program uses that CPU's memory for walks: an event has no
// use of its group, and no throttle is foreseen. The end of a period gives the memory free.
func TestWalksWhileBusy(t *testing.T) {
	const quota, period = 40 * ms, time.Second
	for name, busy := range map[string]uint64{"free": 0, "busy": 1} {
		t.Run(name, func(t *testing.T) {
			p := open(t, Options{Use: true, Ahead: true})
			g := cgrouptest.New(t)
			g.Prevail()
			id := inode(t, g)
			h := subscribe(t, p, nil)
			limit(t, g, quota, period)
			watch(t, p, g)
			load := g.Spin(1)[0]
			within(t, 20*time.Second, "a period is over", func() bool { return totals(t, p, g).PeriodEnd > 0 })
			load.Stop()
			// The next throttle is to begin before another period is over, whose end would give the memory free.
			time.Sleep(period - (Monotonic()-totals(t, p, g).PeriodEnd)%period + period/20)
			begun, foreseen := len(h.begins(id)), len(h.kind(Dry, id))
			walks := make([]kernelWalk, possible(t))
			for i := range walks {
				walks[i].Busy = busy
			}
			if err := p.objects.Walks.Put(uint32(0), walks); err != nil {
				t.Fatal(err)
			}
			g.Spin(1)
			within(t, 20*time.Second, "it is throttled", func() bool { return len(h.begins(id)) > begun })
			e, ahead := h.begins(id)[begun], len(h.kind(Dry, id))-foreseen
			if known := e.Facts.Used != NoUse; known != (busy == 0) {
				t.Errorf("used %v", e.Facts.Used)
			}
			if ahead > 0 && busy != 0 { // a free one may not be foreseen beside another load
				t.Errorf("%d throttles foreseen", ahead)
			}
			within(t, 20*time.Second, "a period is over", func() bool {
				if err := p.objects.Walks.Lookup(uint32(0), &walks); err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(walks, func(w kernelWalk) bool { return w.Busy == 0 })
			})
		})
	}
}
