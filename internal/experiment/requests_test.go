package experiment

import (
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/strategy"
)

func TestRequestsOnlyHasNoLimitAndNoPolicy(t *testing.T) {
	if m := RequestsOnly; !m.Unlimited() || m.Policy() != strategy.None || NeedsAgent([]Mode{m}) {
		t.Errorf("unlimited %v, policy %s, agent %v", m.Unlimited(), m.Policy(), NeedsAgent([]Mode{m}))
	}
}

// TestWeightOf: weights are in proportion to requests, and the kernel takes each.
func TestWeightOf(t *testing.T) {
	for _, c := range []struct {
		cpus   float64
		v1, v2 int64
	}{{0.5, 512, 50}, {1, 1024, 100}, {1.5, 1536, 150}, {63.5, 65024, 6350}, {0, 10, 1}, {-1, 10, 1},
		{1000, 1 << 18, 10000}} {
		if v1, v2 := WeightOf(cgroup.V1, c.cpus), WeightOf(cgroup.V2, c.cpus); v1 != c.v1 || v2 != c.v2 {
			t.Errorf("%g CPUs: %d and %d, want %d and %d", c.cpus, v1, v2, c.v1, c.v2)
		}
	}
}
