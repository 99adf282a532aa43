package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// second is what a container's threads did in a second.
func second(running time.Duration, waits Parts) [2]Reading {
	before := Reading{At: time.Hour, Running: time.Minute, Waiting: time.Minute,
		Parts: Parts{Own: time.Second, Above: time.Second,
			Behind: time.Second, Idle: time.Second, Self: time.Second, Unnamed: time.Second, Lost: Lost{time.Second,
				time.Second}}}
	after := before
	after.At += time.Second
	after.Running += running
	after.Waiting += waits.sum()
	after.Parts = before.Parts.plus(waits)
	return [2]Reading{before, after}
}

func TestContention(t *testing.T) {
	const half = time.Second / 2
	for _, c := range []struct {
		name       string
		containers [][2]Reading
		contended  time.Duration
		runnable   time.Duration
		ratio      float64
	}{
		{"nobody", nil, 0, 0, 0},
		{"nothing ran", [][2]Reading{second(0, Parts{})}, 0, 0, 0},
		{"alone on a CPU", [][2]Reading{second(time.Second, Parts{})}, 0, time.Second, 0},
		{"two groups on one CPU", [][2]Reading{second(half, Parts{Behind: half}), second(half, Parts{Behind: half})},
			time.Second, 2 * time.Second, 0.5},
		{"throttled by its own limit", [][2]Reading{second(200*ms, Parts{Own: 800 * ms})}, 0, 200 * ms, 0},
		{"throttled by the limit of its pod", [][2]Reading{second(200*ms, Parts{Above: 800 * ms})}, 0, 200 * ms, 0},
		{"a limit does not dilute it",
			[][2]Reading{second(100*ms, Parts{Behind: 100 * ms, Own: 500 * ms, Above: 300 * ms})}, 100 * ms, 200 * ms,
			0.5},
		{"threads of its own are in the way", [][2]Reading{second(time.Second, Parts{Self: 3 * time.Second})}, 0,
			4 * time.Second, 0},
		{"neither idle CPUs nor what takes a CPU away is a group",
			[][2]Reading{second(600*ms, Parts{Idle: 100 * ms, Unnamed: 100 * ms,
				Lost: Lost{100 * ms, 100 * ms}})}, 0, time.Second, 0},
		{"eight threads beside one", [][2]Reading{second(half, Parts{Self: 7 * half, Behind: 8 * half}),
			second(half, Parts{Behind: half})},
			9 * half, 18 * half, 0.5},
	} {
		var n Node
		n.At(0)
		for _, one := range c.containers {
			n.Add(one[0], one[1])
		}
		n.At(ContentionEvery)
		got := n.Sum()
		if got.Contended != c.contended || got.Runnable != c.runnable || got.Ratio == nil ||
			math.Abs(*got.Ratio-c.ratio) > 1e-9 {
			t.Errorf("%s: contended %v, runnable %v, ratio %v; want %v, %v, %v", c.name, got.Contended, got.Runnable,
				got.Ratio, c.contended, c.runnable, c.ratio)
		}
	}
}

// TestContentionOfTheLastInterval: there is no ratio before the first interval is over; each one is its own.
func TestContentionOfTheLastInterval(t *testing.T) {
	var n Node
	calm, full := second(time.Second, Parts{}), second(250*ms, Parts{Behind: 750 * ms})
	now := 5 * time.Hour
	for i, c := range []struct {
		what [2]Reading
		want float64 // -1: none
	}{{calm, -1}, {full, 0}, {full, 0.75}, {calm, 0.75}, {calm, 0}} {
		for range 10 { // of a second each
			n.At(now)
			n.Add(c.what[0], c.what[1])
			if got := n.Sum().Ratio; (got == nil) != (c.want < 0) || got != nil && math.Abs(*got-c.want) > 1e-9 {
				t.Errorf("interval %d, %v: ratio %v, want %v", i, now, got, c.want)
			}
			now += time.Second
		}
	}
}

// TestContentionOnlyGrows: whatever order the readings come in, the counters do not go back, and the ratio is one.
func TestContentionOnlyGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	some := func() time.Duration { return time.Duration(rng.IntN(1000)-100) * ms }
	var n Node
	before, last := Reading{}, n.Sum()
	for i := range 10_000 {
		after := Reading{Running: before.Running + some(),
			Parts: before.Parts.plus(Parts{Own: some().Abs(), Behind: some().Abs(), Self: some().Abs(),
				Idle: some().Abs()})}
		n.Add(before, after)
		n.At(time.Duration(i) * time.Second)
		now := n.Sum()
		if now.Contended < last.Contended || now.Runnable < last.Runnable {
			t.Fatalf("it went back: %+v, then %+v", last, now)
		}
		if now.Ratio != nil && (*now.Ratio < 0 || *now.Ratio > 1) {
			t.Fatalf("ratio %v", *now.Ratio)
		}
		before, last = after, now
	}
}
