package experiment

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// exponential draws a sorted sample.
func exponential(seed uint64, n int, scale float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	list := make([]float64, n)
	for i := range list {
		list[i] = scale * (1 + rng.ExpFloat64())
	}
	slices.Sort(list)
	return list
}

// TestChanceCovers draws pairs of samples that differ by chance alone: the interval must hold the true ratio, which is
// 1, in about 19 of 20 cases, and the true ratio of samples that do differ as often.
func TestChanceCovers(t *testing.T) {
	for _, scale := range []float64{1, 1.5} {
		held := 0
		for i := range uint64(40) {
			if c := chance(exponential(2*i, 100, scale), exponential(2*i+1, 100, 1), 0.8, i); c.Low <= scale && scale <= c.High {
				held++
			}
		}
		if held < 35 || held == 40 {
			t.Errorf("ratio %g: held in %d of 40 intervals, want about 38", scale, held)
		}
	}
}

func TestChance(t *testing.T) {
	a, b := exponential(1, 300, 1), exponential(2, 300, 1)
	if got := chance(a, b, 0.99, 7); got != chance(a, b, 0.99, 7) || got == chance(a, b, 0.99, 8) {
		t.Errorf("%v is not a function of the seed", got)
	}
	if got := chance([]float64{3, 3}, []float64{2, 2}, 0.99, 1); got != (Interval{1.5, 1.5}) {
		t.Errorf("samples without spread: %v", got)
	}
	if got := chance(nil, b, 0.99, 1); got != (Interval{}) {
		t.Errorf("no sample: %v", got)
	}
	wide, narrow := chance(exponential(3, 30, 1), exponential(4, 30, 1), 0.9, 1), chance(exponential(3, 3000, 1), exponential(4, 3000, 1), 0.9, 1)
	if wide.High-wide.Low < narrow.High-narrow.Low {
		t.Errorf("30 requests: %v, 3000: %v", wide, narrow)
	}
}

// TestResampledRank has one value beyond the quantile: it is drawn as often as the law of the maximum says.
func TestResampledRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	highest := 0
	for range 2000 {
		if resampled([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 9}, 1, rng) == 9 {
			highest++
		}
	}
	if highest < 1220 || highest > 1380 { // 1 - 0.9^10 = 0.651
		t.Errorf("the maximum was drawn in %d of 2000", highest)
	}
}
