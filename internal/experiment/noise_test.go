package experiment

import (
	"math/rand/v2"
	"testing"
)

// drawn are the latencies of a round.
func drawn(rng *rand.Rand, n int, scale float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = scale * (1 + rng.ExpFloat64())
	}
	return list
}

// clustered draws rounds, a few of which are slow as a whole: which ones is chance, and another chance in each run.
func clustered(seed uint64, rounds int, scale float64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	list := make([][]float64, rounds)
	for i := range list {
		pace := scale
		if rng.Float64() < 0.15 {
			pace *= 2
		}
		list[i] = drawn(rng, 15, pace)
	}
	return list
}

// TestChanceCovers draws pairs of runs that differ by chance alone, though what is slow is slow by the round: the
// interval must hold the true ratio in some 90 to 95 of 100 cases. Resampling single requests holds it in 80, and in 56
// where a round has 40 of them.
func TestChanceCovers(t *testing.T) {
	held := 0
	for i := range uint64(100) {
		scale := 1 + float64(i%2)/2
		if c := chance(clustered(2*i, 30, scale), clustered(2*i+1, 30, 1), 0.9, i); c.Low <= scale && scale <= c.High {
			held++
		}
	}
	if held < 86 || held > 99 {
		t.Errorf("held in %d of 100 intervals, want about 95", held)
	}
}

// TestChancePairs gives both sides the same slow rounds: what they have in common is no chance.
func TestChancePairs(t *testing.T) {
	a := [][]float64{{1, 1}, {9, 9}, {1, 1}, {1, 1}}
	b := [][]float64{{2, 2}, {18, 18}, {2, 2}, {2, 2}}
	if got := chance(a, b, 0.8, 1); got != (Interval{0.5, 0.5}) {
		t.Errorf("rounds that are twice as long, each: %v", got)
	}
}

func TestChance(t *testing.T) {
	a, b := clustered(1, 20, 1), clustered(2, 20, 1)
	if got := chance(a, b, 0.99, 7); got != chance(a, b, 0.99, 7) || got == chance(a, b, 0.99, 8) {
		t.Errorf("%v is not a function of the seed", got)
	}
	if got := chance([][]float64{{3}, {3}}, [][]float64{{2}, {2, 2}}, 0.99, 1); got != (Interval{1.5, 1.5}) {
		t.Errorf("samples without spread: %v", got)
	}
	for name, none := range map[string][][]float64{"no round": nil, "no request": make([][]float64, 20),
		"fewer rounds": a[1:]} {
		if got := chance(none, b, 0.99, 1); got != (Interval{}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	wide, narrow := chance(clustered(3, 10, 1), clustered(4, 10, 1), 0.9, 1), chance(clustered(3, 300, 1),
		clustered(4, 300, 1), 0.9, 1)
	if wide.High-wide.Low < narrow.High-narrow.Low {
		t.Errorf("10 rounds: %v, 300: %v", wide, narrow)
	}
}

// TestQuantileOf weights each request by how often its round was drawn.
func TestQuantileOf(t *testing.T) {
	sorted := ordered([][]float64{{4, 1}, {3, 2}})
	for _, c := range []struct {
		drawn []int
		q     float64
		want  float64
	}{
		{[]int{1, 1}, 0.5, 2}, {[]int{1, 1}, 0.51, 3}, {[]int{1, 1}, 1, 4},
		{[]int{2, 0}, 0.5, 1}, {[]int{2, 0}, 0.51, 4},
		{[]int{0, 2}, 0.5, 2}, {[]int{0, 2}, 0.51, 3}, {[]int{3, 1}, 0.3, 1}, {[]int{3, 1}, 0.5, 2},
	} {
		if got := quantileOf(sorted, c.drawn, c.q); got != c.want {
			t.Errorf("rounds drawn %v: quantile %g is %g, want %g", c.drawn, c.q, got, c.want)
		}
	}
}
