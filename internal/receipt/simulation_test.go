package receipt

import (
	"flag"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// weeks is how many simulated weeks each test looks at.
var weeks = flag.Int("weeks", 10_000, "simulated weeks to try")

// kind is what refills do to the spells of a week.
type kind struct {
	name string
	// treated is what a spell comes to that would be throttled for y when it is withheld. other is a spell as it might
	// as well have been.
	treated func(y, other float64) float64
	effect  bool
}

func kinds() []kind {
	return []kind{
		{"no effect, spell by spell", func(y, _ float64) float64 { return y }, false},
		{"no effect, in the mean", func(_, other float64) float64 { return other }, false},
		{"saves nearly all", func(y, _ float64) float64 { return math.Min(y, 0.0002) }, true},
		{"saves a third", func(_, other float64) float64 { return other * 2 / 3 }, true},
		{"harms", func(y, _ float64) float64 { return math.Min(Longest.Seconds(), 1.5*y) }, true},
	}
}

// week is the load of one container: how long its spells would be throttled, in seconds.
//
// Most spells are throttled for a part of a period, some for many: Pareto's law, with a tail between one without a
// variance and a light one. The load rises and falls with the day and with a slow chance of its own, which the next
// spells share. Containers differ in how many spells they have.
type week struct {
	rng      *rand.Rand
	crowds   *rand.Rand // requests that wait at once
	scale    float64
	tail     float64 // Pareto's exponent
	mood     float64 // logarithm of the load
	spread   float64
	keeps    float64 // of the mood from spell to spell
	n, spell int
}

func newWeek(seed uint64, part float64) *week {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := &week{rng: rng, crowds: rand.New(rand.NewPCG(seed, 12)), scale: 0.01 + 0.09*rng.Float64(),
		tail: 1.2 + 1.8*rng.Float64(), spread: rng.Float64(), keeps: 0.9 + 0.0999*rng.Float64()}
	w.n = int(math.Exp(math.Log(2*Least/part) + rng.Float64()*math.Log(4)))
	return w
}

// next is two spells at the same load.
func (w *week) next() (y, other float64) {
	w.spell++
	w.mood = w.keeps*w.mood + math.Sqrt(1-w.keeps*w.keeps)*w.spread*w.rng.NormFloat64()
	day := 1 + 0.5*math.Sin(14*math.Pi*float64(w.spell)/float64(w.n))
	load := w.scale * day * math.Exp(w.mood)
	return w.one(load), w.one(load)
}

func (w *week) one(load float64) float64 {
	return math.Min(Longest.Seconds(), load*math.Pow(1-w.rng.Float64(), -1/w.tail))
}

// told is what was seen in one week, at all of its looks.
type told struct {
	missed bool // an interval did not cover the mean effect on the spells until then
	unsure bool // that of the requests did not
	harm   bool
	saves  bool

	invalid bool
}

// weekOf is a week under one kind.
type weekOf struct {
	kind
	Figures
	effects, requests float64
	told
}

// live lives through a week under each kind, with the same loads and coins, and looks at the figures after each
// withheld spell and some in between.
func live(w *week, part float64) []*weekOf {
	var all []*weekOf
	for _, k := range kinds() {
		all = append(all, &weekOf{kind: k})
	}
	for i := range w.n {
		y, other := w.next()
		held := w.rng.Float64() < part
		look := held || i%64 == 0 || i == w.n-1
		crowd := 0.5 + w.crowds.ExpFloat64()*4
		for _, k := range all {
			k.spell(y, other, crowd, held, part, look)
		}
	}
	return all
}

func (k *weekOf) spell(y, other, crowd float64, held bool, part float64, look bool) {
	treated := k.treated(y, other)
	k.effects += y - treated
	k.requests += crowd * (y - treated)
	came := treated
	if held {
		came = y
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	k.Add(Outcome{Withheld: held, Part: part, Lost: seconds(came), Requests: seconds(crowd * came),
		RequestsKnown: true})
	if !look || !k.Saved.Known() {
		return
	}
	low, high, _ := k.Saved.Interval(Alpha)
	truth := k.effects / k.Saved.n
	k.missed = k.missed || truth < low || truth > high
	low, high, _ = k.Requests.Interval(Alpha)
	truth = k.requests / k.Requests.n
	k.unsure = k.unsure || truth < low || truth > high
	v := k.Verdict()
	k.harm, k.saves = k.harm || v.Harm(), k.saves || v == Saves
	k.invalid = k.invalid || v == Invalid
}

// try lives through many weeks on all CPUs, and counts by kind.
func try(part float64, n int) map[string]*counts {
	sums := map[string]*counts{}
	for _, k := range kinds() {
		sums[k.name] = &counts{}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	jobs := runtime.GOMAXPROCS(0)
	for job := range jobs {
		wg.Go(func() {
			for i := job; i < n; i += jobs {
				all := live(newWeek(uint64(i), part), part)
				mu.Lock()
				for _, k := range all {
					sums[k.name].add(k.told, n)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sums
}

// counts are parts of the weeks.
type counts struct{ missed, unsure, harm, saves, invalid float64 }

func (c *counts) add(t told, n int) {
	each := 1 / float64(n)
	c.missed += each * one(t.missed)
	c.unsure += each * one(t.unsure)
	c.harm += each * one(t.harm)
	c.saves += each * one(t.saves)
	c.invalid += each * one(t.invalid)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// TestCoverage: over a whole week of looks, the interval covers the effect in 94 % of the weeks at least. Where there
// is no effect, refills end by mistake in 1 % of the weeks at most.
func TestCoverage(t *testing.T) {
	for _, part := range []float64{0.01, 0.1, 0.5} {
		sums := try(part, *weeks/3)
		for _, k := range kinds() {
			c := sums[k.name]
			t.Logf("%2.0f %% withheld, %-26s missed in %.2f %% of the weeks (requests: %.2f %%), harm %.2f %%, "+
				"saves %.2f %%, not valid %.2f %%", 100*part, k.name,
				100*c.missed, 100*c.unsure, 100*c.harm, 100*c.saves, 100*c.invalid)
			if c.missed > 0.06 || c.unsure > 0.06 {
				t.Errorf("%v, %s: missed in %.2f %% of the weeks, the requests in %.2f %%", part, k.name, 100*c.missed,
					100*c.unsure)
			}
			if !k.effect && c.harm > 0.01 || k.name != "harms" && c.harm > 0.001 || c.invalid > 0.005 {
				t.Errorf("%v, %s: a false alarm in %.2f %% of the weeks, not valid in %.2f %%", part, k.name,
					100*c.harm, 100*c.invalid)
			}
			if k.name == "saves nearly all" && c.saves < 0.9 || k.name == "harms" && c.harm < 0.2 {
				t.Errorf("%v, %s: saves in %.2f %% of the weeks, harms in %.2f %%", part, k.name, 100*c.saves,
					100*c.harm)
			}
		}
	}
}
