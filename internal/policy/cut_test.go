package policy

import (
	"testing"

	"plimsoll/internal/strategy"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		policy         strategy.Policy
		rules          Rules
		part           float64
		asked          float64
		burst, raising int64
	}{
		{strategy.Auto, Rules{Burst: true}, 0, 2, 1000, 300},
		{strategy.Auto, Rules{Burst: true}, 0.5, 2, 100, 200},
		{strategy.Auto, Rules{Burst: true}, 0.75, 2, 50, 150},
		{strategy.Auto, Rules{Burst: true}, 1, 2, 0, 100},
		{strategy.CPUBurstOnly, Rules{Burst: true}, 0.5, 1, 50, 200},
		{strategy.CPUBurstOnly, Rules{Burst: true, BurstAboveQuota: true}, 0.5, 10, 500, 200},
		{strategy.CPUBurstOnly, Rules{}, 0.5, 0, 0, 200},
		{strategy.None, Rules{Burst: true}, 0.5, 0, 0, 200},
	} {
		s := strategy.Default()
		s.Policy, s.StartupBurstPercent = c.policy, 500
		got := cut(s, c.part, c.rules)
		if want := 500 - int64(400*c.part); got.StartupBurstPercent != want {
			t.Errorf("%s, %v off: cap of a start %d %%, want %d", c.policy, c.part, got.StartupBurstPercent, want)
		}
		if a := AskedBurst(s, c.rules); a != c.asked || got.CPUBurstPercent != c.burst ||
			got.CFSQuotaBurstPercent != c.raising {
			t.Errorf("%s, %v off: asked %v, burst %d %%, cap %d %%; want %v, %d, %d", c.policy, c.part, a,
				got.CPUBurstPercent,
				got.CFSQuotaBurstPercent, c.asked, c.burst, c.raising)
		}
	}
}
