package policy

import (
	"testing"

	"plimsoll/internal/strategy"
)

// TestStrategyOfAPod: a pod has that of its first container for which anything may be done, or else of its first.
func TestStrategyOfAPod(t *testing.T) {
	of := func(p strategy.Policy, percent int64) Group {
		return Group{Strategy: strategy.Strategy{Policy: p, CFSQuotaBurstPercent: percent}}
	}
	paused := of(strategy.Auto, 500)
	paused.Paused = true
	for name, c := range map[string]struct {
		containers []Group
		want       int64
	}{
		"the first of two":         {[]Group{of(strategy.Auto, 200), of(strategy.Auto, 300)}, 200},
		"a side-car without any":   {[]Group{of(strategy.None, 200), of(strategy.CFSQuotaBurstOnly, 300)}, 300},
		"one that is only burst":   {[]Group{of(strategy.None, 200), of(strategy.CPUBurstOnly, 300)}, 300},
		"one that is paused":       {[]Group{paused, of(strategy.Auto, 300)}, 300},
		"none for which one may":   {[]Group{of(strategy.None, 200), paused}, 200},
		"none has any, and no cap": {[]Group{of(strategy.None, 0), of(strategy.None, 300)}, 0},
	} {
		var p podCandidates
		for _, g := range c.containers {
			p.containers = append(p.containers, &candidate{Group: g})
		}
		if got := p.strategy().CFSQuotaBurstPercent; got != c.want {
			t.Errorf("%s: %d %%, want %d", name, got, c.want)
		}
	}
}
