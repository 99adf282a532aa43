package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// TestRaisedIsScaled: a raised group whose period the kernel scales stays the agent's, and has the owner's share of a
// CPU when the agent ends, whether its limit is declared or not.
func TestRaisedIsScaled(t *testing.T) {
	for _, declared := range []*workload.Declared{nil,
		{Source: "a test", Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}}} {
		w := newWorld(t)
		w.hog("/busy")
		w.place.pods[0].Containers[0].Declared = declared
		w.run(2 * time.Second)
		w.wantRaised("/busy", 50*ms)
		w.kernel.Scale("/busy")
		w.run(40 * time.Second)
		w.wantRaised("/busy", 100*ms)
		w.wantProblem("")
		if c := w.status("/busy"); c.Limit != 100*ms || c.Quota.Original != 100*ms || c.Quota.Problem != "" {
			t.Errorf("limit %v, %+v", c.Limit, c.Quota)
		}
		if err := w.agent.stop(); err != nil {
			t.Fatal(err)
		}
		if b := w.kernel.Bandwidth("/busy"); b.Quota != 100*ms || b.Period != 200*ms || b.Burst != 0 {
			t.Errorf("declared %v: restored %+v", declared != nil, b)
		}
	}
}
