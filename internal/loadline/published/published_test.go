package published

import (
	"math"
	"testing"

	"plimsoll/internal/loadline"
)

// Every exponential and Pareto cell is met by a run of the published length: 78 figures within three standard errors
// but for the one or two that chance allows. `make bench-model` does the same with 28 million periods.
func TestPublishedCells(t *testing.T) {
	sum, beyond, count := 0.0, 0, 0
	for _, c := range Cells() {
		if c.Kind == Poisson {
			continue
		}
		k, err := Against(c, Periods, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, z := range []float64{k.ZMiss, k.ZWCET} {
			count++
			sum += z * z
			if math.Abs(z) > 3 {
				beyond++
				t.Logf("%v: z = %.1f: E %.4f, published %.4f; P %.3f %%, published %.2f %%",
					c, z, k.Mine.WCET.Value, c.WCET, 100*k.Mine.Miss.Value, 100*c.Miss)
			}
		}
	}
	if rms := math.Sqrt(sum / float64(count)); count != 78 || beyond > 0 || rms > 1.2 {
		t.Errorf("of %d figures %d are more than 3 standard errors off; the rms is %.2f", count, beyond, rms)
	}
}

func TestPoissonBrackets(t *testing.T) {
	for _, c := range Cells() {
		if c.Kind != Poisson {
			continue
		}
		low, high, err := Bracket(c, Periods, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Within(low, high) || high.Miss.Value < 1.02*low.Miss.Value {
			t.Errorf("%v: published %.4f/%.4f, not in %.4f/%.4f to %.4f/%.4f", c, c.WCET, c.Miss,
				low.WCET.Value, low.Miss.Value, high.WCET.Value, high.Miss.Value)
		}
	}
}

// The published rule is blind to the periods in which every container eats its whole quota.
func TestBlindSpot(t *testing.T) {
	n, err := Cell{Kind: Exponential, M: 5, Utilization: 0.9, Burst: 1}.Node()
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[loadline.Rule][2]float64{
		loadline.Published: {0.2117, 1.3042}, loadline.Strict: {0.4521, 3.078},
	} {
		r, err := loadline.Simulate(n, loadline.Options{Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(r.Miss.Value-want[0]) > 0.003 || math.Abs(r.WCET.Value-want[1]) > 0.06 {
			t.Errorf("%v: P %.4f, E %.3f, want %v", rule, r.Miss.Value, r.WCET.Value, want)
		}
	}
}
