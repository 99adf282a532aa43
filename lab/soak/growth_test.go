package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// line is y over x with noise: level + slope * x.
func line(n int, from, level, slope, noise float64, rng *rand.Rand) (list []point) {
	for i := range n {
		x := from + 10*float64(i)
		list = append(list, point{x, level + slope*(x-from) + noise*rng.NormFloat64()})
	}
	return list
}

func TestGrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	exact := func(slope float64) []point { return line(12, 0, 5, slope, 0, rng) }
	wild := exact(0.5)
	wild[3].y, wild[9].y = 1e6, -1e6
	for name, c := range map[string]struct {
		points []point
		want   growth
	}{
		"constant":                {exact(0), growth{0, 0, 0, true, 12, 110}},
		"line":                    {exact(0.5), growth{0.5, 0.5, 0.5, true, 12, 110}},
		"enough for an interval":  {exact(0.5)[:7], growth{0.5, 0.5, 0.5, true, 7, 60}},
		"too few for an interval": {exact(0.5)[:6], growth{Slope: 0.5, Points: 6, Span: 50}},
		"one point":               {[]point{{1, 2}}, growth{Points: 1}},
		"the same x":              {[]point{{1, 2}, {1, 3}}, growth{Points: 2}},
		"nothing":                 {nil, growth{}},
	} {
		if got := grow(c.points); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := grow(wild); got.Slope != 0.5 || got.Low > 0.5 || got.High < 0.5 {
		t.Errorf("with two wild points: %+v", got)
	}
}

// TestInterval: of many runs of noise about a known slope, the interval has the slope in 99 % of them, and it is
// not so wide that anything is in it.
func TestInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const runs, slope, noise = 1000, 0.05, 4
	missed, width := 0, 0.0
	for range runs {
		g := grow(line(12, 2000, 0, slope, noise, rng))
		if !g.Known || g.Low > slope || g.High < slope {
			missed++
		}
		width += (g.High - g.Low) / runs
	}
	if missed > 2*runs/100 {
		t.Errorf("the interval of 99 %% misses the slope in %d of %d runs", missed, runs)
	}
	if width < 0.1 || width > 0.4 {
		t.Errorf("mean width %.3f", width)
	}
}

func TestBlocks(t *testing.T) {
	var list []point
	for i := range 10 {
		list = append(list, point{float64(i), float64(100 * i)})
	}
	for _, c := range []struct {
		of, most int
		want     []point
	}{
		{0, 3, nil},
		{2, 3, []point{{0, 0}, {1, 100}}},
		{9, 3, []point{{1, 100}, {4, 400}, {7, 700}}},
		{10, 3, []point{{1, 100}, {4, 400}, {7.5, 750}}},
		{10, 1, []point{{4.5, 450}}},
	} {
		if got := blocks(list[:c.of], c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d samples in %d blocks: %v, want %v", c.of, c.most, got, c.want)
		}
	}
	spike := []point{{0, 1}, {1, math.Inf(1)}, {2, 3}}
	if got := blocks(spike, 1); got[0].y != 3 {
		t.Errorf("a spike: %v", got)
	}
}
