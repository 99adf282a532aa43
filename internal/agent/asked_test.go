package agent

import (
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestNothingIsAskedFor: a burst that is its owner's is not told of as if none had been asked for,
// and the kernel had one.
func TestNothingIsAskedFor(t *testing.T) {
	for name, change := range map[string]func(w *world, s *strategy.Strategy){
		"policy none": func(_ *world, s *strategy.Strategy) { s.Policy = strategy.None },
		"no limit": func(w *world, _ *strategy.Strategy) {
			if err := w.kernel.ForeignWrite("cpu/lab/a/cpu.cfs_quota_us", "-1"); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.container("/lab/a", 50*ms, sim.Periodic(50*ms, sim.Fixed(time.Millisecond), 1))
			if err := w.kernel.ForeignWrite("cpu/lab/a/cpu.cfs_burst_us", "5000"); err != nil {
				t.Fatal(err)
			}
			change(w, &c.Strategy)
			w.alone(c)
			w.run(time.Second)
			if b := w.status("/lab/a").Burst; b.Requested != 5*ms || b.InForce != 5*ms || b.Changed || b.Clamped {
				t.Errorf("%+v", b)
			}
		})
	}
}
