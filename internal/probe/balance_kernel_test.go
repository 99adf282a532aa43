package probe

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// What a group has used of its period, what is in its pool and what its CPUs hold is together what it was handed, but for what
// a CPU ran over its slice until a tick showed it.
func TestBalance(t *testing.T) {
	const quota, ticks = 40 * ms, 3
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	limit(t, g, quota, 300*ms)
	watch(t, p, g)
	h := listen(t, p, nil)
	g.Spin(2)
	id := inode(t, g)
	within(t, 30*time.Second, "eight throttles begin", func() bool { return len(h.begins(id)) >= 8 })
	least, err := tick()
	if err != nil {
		t.Fatal(err)
	}
	known, even := 0, 0
	for _, e := range h.begins(id) {
		f := e.Facts
		if f.Used == NoUse {
			continue
		}
		known++
		if off := f.Used + f.Runtime + f.Held - quota; off > -ticks*least && off < ticks*least {
			even++
		}
	}
	// A period whose end another machine's load has put off counts for more than itself.
	if known < 5 || 2*even < known && !emulated() {
		t.Errorf("%d of the %d throttles whose use is known are even with a quota of %v: %+v", even, known, quota, h.begins(id))
	}
	if e := h.begins(id)[0]; e.Facts.Used != NoUse {
		t.Errorf("before the end of a first period: %+v", e)
	}
}

// A refill leaves a CPU nothing of what it held, so that less than the quota is added by it.
func TestRefillTakesWhatCPUsHold(t *testing.T) {
	needTwoCPUs(t)
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	limit(t, g, 20*ms, time.Second)
	watch(t, p, g)
	id, n := inode(t, g), 0
	const each = 5 // refills in a period
	h := listen(t, p, func(e Event) {
		if n++; n%(each+1) != 0 {
			g.Limit(20 * ms)
		}
	})
	g.Spin(2)
	within(t, 30*time.Second, "two periods are over", func() bool { return len(h.begins(id)) > 3*(each+1) })
	less := 0
	handed := map[time.Duration]time.Duration{} // by the period's end
	for _, e := range h.begins(id) {
		f := e.Facts
		handed[f.Expires] += 20 * ms
		if f.Used == NoUse {
			continue
		}
		if f.Used+f.Runtime+f.Held < handed[f.Expires]-ms {
			less++
		}
	}
	if less == 0 && !emulated() {
		t.Errorf("of %d refills none took anything: %+v", n, h.begins(id))
	}
}
