package loadline

import "testing"

// TestQueueOfAHeavyTail: a power law does not die out on a wider circle. The figures are of simulations of 5 M periods.
func TestQueueOfAHeavyTail(t *testing.T) {
	for _, c := range []struct{ u, without, with float64 }{{0.7, 0.1248, 0.01531}, {0.9, 0.4925, 0.1399}} {
		q := must[*Queue](t)(NewQueue(pareto4(t, c.u), 1))
		near(t, "throttled without a burst", q.Throttled(0), c.without, 1e-3)
		near(t, "throttled with a burst", q.Throttled(1), c.with, 2e-4)
	}
}
