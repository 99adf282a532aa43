package probe

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// A group's use in its period, its pool and the runtime of its CPUs add up to the runtime handed out, except for the
// time that a CPU ran over its slice until a tick showed it.
func TestBalance(t *testing.T) {
	const quota, ticks = 40 * ms, 3
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, quota, 300*ms)
	watch(t, p, g)
	h := subscribe(t, p, nil)
	g.Spin(2)
	id := inode(t, g)
	off, err := Tick()
	if err != nil {
		t.Fatal(err)
	}
	off *= ticks
	if emulated() {
		off *= ticks
	}
	within(t, 30*time.Second, "six throttles are even with a quota of 40 ms", func() bool {
		even := 0
		for _, e := range h.begins(id) {
			f := e.Facts
			if sum := f.Used + f.Runtime + f.OnCPUs; f.Used != NoUse && sum > quota-off && sum < quota+off {
				even++
			}
		}
		return even >= 6
	})
}

// Without the use of periods none is reported.
func TestNoUse(t *testing.T) {
	p := open(t, Options{})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 10*ms, 100*ms)
	watch(t, p, g)
	h := subscribe(t, p, nil)
	g.Spin(1)
	id := inode(t, g)
	within(t, 20*time.Second, "three throttles begin", func() bool { return len(h.begins(id)) >= 3 })
	for _, e := range h.begins(id) {
		if e.Facts.Used != NoUse || e.Facts.OnCPUs != 0 {
			t.Errorf("%+v", e)
		}
	}
}

// A refill leaves a CPU nothing of its runtime, so that it adds less than the quota.
func TestRefillTakesTheRuntimeOfCPUs(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 20*ms, 500*ms)
	watch(t, p, g)
	id, n := inode(t, g), 0
	const each = 3 // refills in a row
	h := subscribe(t, p, func(e Event) {
		if n++; n%(each+1) != 0 {
			g.Limit(20 * ms)
		}
	})
	g.Spin(2)
	within(t, 30*time.Second, "a refill has taken something", func() bool {
		handed := map[time.Duration]time.Duration{} // by the period's end
		for _, e := range h.begins(id) {
			f := e.Facts
			handed[f.Expires] += 20 * ms
			if f.Used != NoUse && f.Used+f.Runtime+f.OnCPUs < handed[f.Expires]-ms {
				return true
			}
		}
		return false
	})
}
