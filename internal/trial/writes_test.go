package trial

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// slots is the demo without a machine: its service, at 45 % of half a CPU, on two CPUs of which containers may have
// half, in slots of 20 s. It returns the agent's decisions, and for how long the service was throttled.
func slots(t *testing.T, p strategy.Policy, n uint64) (decisions map[string]int64, still time.Duration) {
	t.Helper()
	decisions = map[string]int64{}
	for seed := range n {
		g := service("/lab/web", p)
		g.Load = sim.Poisson(5.625, sim.Fixed(40*ms), 8)
		w := mustNew(t, Scenario{Kernel: mainline(2, seed), Threshold: 50, Events: true, Ahead: true,
			Groups: []Group{g}})
		w.Run(time.Second, nil) // the burst is set, and the node known
		before := w.Agent.Status().Writes.Decisions
		w.Run(20*time.Second, nil)
		checkCaps(t, w)
		for kind, total := range w.Agent.Status().Writes.Decisions {
			decisions[kind] += total - before[kind]
		}
		still += w.Kernel.Throttled(g.Path)
	}
	return decisions, still
}

// TestBurstFirstLeavesFewWrites: with the kernel's burst a fifth of the writes is enough,
// and not at the cost of time lost.
func TestBurstFirstLeavesFewWrites(t *testing.T) {
	_, none := slots(t, strategy.None, 20)
	writes, still := map[strategy.Policy]int64{}, map[strategy.Policy]time.Duration{}
	for _, p := range []strategy.Policy{strategy.CFSQuotaBurstOnly, strategy.Auto} {
		var kinds map[string]int64
		kinds, still[p] = slots(t, p, 20)
		for kind, n := range kinds {
			if !strings.HasPrefix(kind, "refused-") {
				writes[p] += n
			}
		}
		t.Logf("%s: %v, throttled for %v of %v", p, kinds, still[p], none)
		if kinds[string(policy.KindRaise)] > kinds[string(policy.KindRefill)]/20 {
			t.Errorf("%s: %v: demand that comes and goes does not last", p, kinds)
		}
	}
	if few, many := writes[strategy.Auto], writes[strategy.CFSQuotaBurstOnly]; 5*few > many || few < 20 {
		t.Errorf("writes: %v", writes)
	}
	if still[strategy.Auto] > none/200 {
		t.Errorf("auto was throttled for %v, without an agent %v", still[strategy.Auto], none)
	}
}
