package agent

import (
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// suppress has offline work bounded when the node's use is above the mark.
func (w *world) suppress() {
	on := true
	w.agent.Configure(strategy.Patch{Colocation: strategy.ColocationPatch{Suppress: strategy.SuppressPatch{Enable: &on}}}.Over(w.agent.Strategy), nil)
}

// TestSuppressKeepsALimit: a group whose owner gave it less than the mark leaves has that, and less where less is left.
func TestSuppressKeepsALimit(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.limit("/batch", 50*ms)
	w.kernel.SetLoad("/batch", sim.Spin(4))
	w.kernel.SetLoad("/web", sim.Spin(3))
	w.suppress()
	w.run(5 * time.Second)
	if got := w.kernel.Bandwidth("/batch").Quota; got >= 50*ms {
		t.Errorf("quota %v above the mark", got)
	}
	w.kernel.SetLoad("/web", sim.Spin(1))
	for range 20 {
		w.run(time.Second)
		if got := w.kernel.Bandwidth("/batch").Quota; got > 50*ms {
			t.Fatalf("quota %v, and its owner's is 50ms", got)
		}
	}
	w.want("/batch", 50*ms, 0)
}
