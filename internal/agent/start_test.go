package agent

import (
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// starts is a world in which a container appears that wants more than its limit for good.
func starts(t *testing.T, change func(*workload.Container)) *world {
	w, _ := hearing(t, true)
	w.run(time.Second)
	c := w.container("/new", 50*ms, sim.Spin(2))
	c.Strategy.Policy = strategy.CFSQuotaBurstOnly
	change(&c)
	w.alone(c)
	return w
}

// TestAStartIsNotRaised: what a new container wants beyond its limit it gets by refills, and its quota stays for a minute.
func TestAStartIsNotRaised(t *testing.T) {
	w := starts(t, func(*workload.Container) {})
	for range 118 {
		w.run(500 * ms)
		w.want("/new", 50*ms, 0)
	}
	s := w.status("/new")
	if want := 85 * time.Second; s.Totals.Usage < want {
		t.Errorf("%v of CPU time used in a minute, want more than %v: its limit is 30 s, its cap 90 s", s.Totals.Usage, want)
	}
	if s.Totals.Raises != 0 || s.TooLow {
		t.Errorf("%d raises, limit too low: %v", s.Totals.Raises, s.TooLow)
	}
	w.run(3 * time.Second)
	w.wantRaised("/new", 50*ms)
}

// TestAStartEnds when its owner says so, and where the strategy wants none.
func TestAStartEnds(t *testing.T) {
	for name, change := range map[string]func(*workload.Container){
		"ready": func(c *workload.Container) { c.Started = true },
		"0 s":   func(c *workload.Container) { c.Strategy.StartupSeconds = 0 },
		"2 s":   func(c *workload.Container) { c.Strategy.StartupSeconds = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			w := starts(t, change)
			w.run(5 * time.Second)
			w.wantRaised("/new", 50*ms)
		})
	}
}

// TestWhoWasThereIsNotNew: of containers that were there before the agent nobody knows how old they are.
func TestWhoWasThereIsNotNew(t *testing.T) {
	w, _ := hearing(t, true)
	w.hog("/a")
	w.run(5 * time.Second)
	w.wantRaised("/a", 50*ms)
}

// TestAStartWithoutEvents is as any other time.
func TestAStartWithoutEvents(t *testing.T) {
	w := newWorld(t)
	w.run(time.Second)
	w.hog("/a")
	w.run(5 * time.Second)
	w.wantRaised("/a", 50*ms)
}
