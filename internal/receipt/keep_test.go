package receipt

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// restarted is the experiment as the next agent has it.
func restarted(t *testing.T, e *Experiment, now time.Time) *Experiment {
	t.Helper()
	data, err := json.Marshal(e.Kept())
	if err != nil {
		t.Fatal(err)
	}
	var k Kept
	if err = json.Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	next, err := Resume(k, e.part, e.seed, e.container, now)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return next
}

// outcome is a random spell, of either arm.
func outcome(rng *rand.Rand, part float64) Outcome {
	o := Outcome{Withheld: rng.Float64() < part, Part: part, Lost: time.Duration(rng.Int64N(int64(Longest))),
		Length: Longest, Measured: rng.IntN(3) > 0, RequestsKnown: rng.IntN(3) > 0,
		Requests: time.Duration(rng.Int64N(int64(time.Hour)))}
	if rng.IntN(2) == 0 {
		o.Lost /= 50
	}
	if o.Measured {
		o.Others = rng.NormFloat64()
	}
	return o
}

// TestKeptFiguresGoOn: after restarts at random moments all estimates, intervals and verdicts are the same, bit by bit,
// as without.
func TestKeptFiguresGoOn(t *testing.T) {
	verdicts := map[Verdict]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		part := []float64{0.001, 0.1, 0.3, 0.5}[seed%4]
		now := time.Unix(1_700_000_000, 123_456_789).UTC()
		one := New(part, seed, "/a", now)
		other := New(part, seed, "/a", now)
		n := rng.IntN(600)
		for range n {
			if rng.IntN(100) == 0 {
				other = restarted(t, other, now)
			}
			o := outcome(rng, part)
			one.Add(o)
			other.Add(o)
			one.number++
			other.number++
		}
		other = restarted(t, other, now)
		if one.Figures != other.Figures || one.number != other.number {
			t.Fatalf("seed %d: %+v\nafter a restart %+v", seed, one, other)
		}
		if a, b := one.Verdict(), other.Verdict(); a != b {
			t.Errorf("seed %d: %s, after a restart %s", seed, a, b)
		}
		for _, pair := range [][2]*Estimate{{&one.Saved, &other.Saved}, {&one.Taken, &other.Taken},
			{&one.Requests, &other.Requests}} {
			low, high, ok := pair[0].Interval(Alpha)
			if l, h, k := pair[1].Interval(Alpha); l != low || h != high || k != ok {
				t.Errorf("seed %d: %v to %v, after a restart %v to %v", seed, low, high, l, h)
			}
		}
		verdicts[one.Verdict()]++
	}
	if verdicts[Unclear] < 50 || verdicts[TooFew] < 50 {
		t.Errorf("verdicts %v: want several of them", verdicts)
	}
}

// TestSpellAtRestart: a spell that is on when the agent ends is aborted, and the next one is not tossed by the same
// coin. It does not begin at once, for the container may be in the midst of the old one.
func TestSpellAtRestart(t *testing.T) {
	for _, withheld := range []bool{true, false} {
		l := start(t, withheld)
		next := restarted(t, l.Experiment, l.now)
		if next.Aborted != 1 || next.number != 1 || next.Watched() || l.Aborted != 0 || !l.Watched() {
			t.Errorf("%d aborted, next is %d, on %v; before: %d aborted, on %v", next.Aborted, next.number,
				next.Watched(), l.Aborted, l.Watched())
		}
		if treated, held := next.Saved.Arms(); treated+held != 0 {
			t.Errorf("%d and %d spells", treated, held)
		}
		if next.Begin(l.now.Add(rest-ms), Meter{}); next.Watched() {
			t.Error("a spell begins in the midst of the old one")
		}
		want := Withhold(l.seed, "/a", l.Since, 1, 0.5)
		if next.Begin(l.now.Add(rest), Meter{}); !next.Watched() || next.Withheld() != want {
			t.Error("no spell after it, or one of another coin")
		}
	}
}

// TestWithdrawnStaysWithdrawn: what was withdrawn begins no spell after a restart.
func TestWithdrawnStaysWithdrawn(t *testing.T) {
	for _, v := range []Verdict{TooFew, Unclear, Saves, HarmsSelf, HarmsRest, Invalid} {
		e := New(0.5, 1, "/a", time.Unix(1000, 0))
		e.harm = v
		if !v.Harm() {
			if _, err := Resume(e.Kept(), 0.5, 1, "/a", time.Unix(1000, 0)); err == nil {
				t.Errorf("withdrawn because it %q", v)
			}
			continue
		}
		next := restarted(t, e, time.Unix(1000, 0))
		if next.Begin(time.Unix(2000, 0), Meter{}); next.Withdrawn() != v || next.Watched() {
			t.Errorf("%q: after a restart %q, on %v", v, next.Withdrawn(), next.Watched())
		}
	}
}

// TestKeptThatCannotBe: figures that no experiment has are refused, each number alone.
func TestKeptThatCannotBe(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	e := New(0.3, 1, "/a", time.Unix(1000, 0))
	for range 100 {
		e.Add(outcome(rng, 0.3))
		e.number++
	}
	if _, err := Resume(e.Kept(), 0.3, 1, "/a", e.Since); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(e.Kept(), 0.31, 1, "/a", e.Since); err == nil || !strings.Contains(err.Error(), "0.31") {
		t.Errorf("with another part: %v", err)
	}
	sizes := map[string]func(*Kept) *float64{
		"sum":     func(k *Kept) *float64 { return &k.Saved.Withheld.Sum },
		"another": func(k *Kept) *float64 { return &k.Requests.Treated.Sum },
		"squares": func(k *Kept) *float64 { return &k.Saved.Squares },
		"null":    func(k *Kept) *float64 { return &k.Taken.Null },
		"part":    func(k *Kept) *float64 { return &k.Taken.Part },
		"both":    func(k *Kept) *float64 { return &k.Both },
		"crowds":  func(k *Kept) *float64 { return &k.KeptFigures.Squares },
	}
	signed := map[string]func(*Kept) *float64{
		"mean":   func(k *Kept) *float64 { return &k.Saved.Mean },
		"others": func(k *Kept) *float64 { return &k.Taken.Treated.Sum },
	}
	try := func(name string, change func(*Kept)) {
		t.Helper()
		k := e.Kept()
		change(&k)
		if _, err := Resume(k, 0.3, 1, "/a", e.Since); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		for name, field := range sizes {
			try(name, func(k *Kept) { *field(k) = x })
		}
		for name, field := range signed {
			if x != -1 {
				try(name, func(k *Kept) { *field(k) = x })
			}
		}
	}
	for name, change := range map[string]func(*Kept){
		"aborted":       func(k *Kept) { k.Aborted = -1 },
		"spells":        func(k *Kept) { k.Taken.Treated.Spells, k.Taken.Withheld.Spells = -1, 60 },
		"fewer":         func(k *Kept) { k.Saved.Treated.Spells -= 10 },
		"next":          func(k *Kept) { k.Next = 99 },
		"more measured": func(k *Kept) { k.Taken.Treated.Spells = 1000 },
		"more requests": func(k *Kept) { k.Requests.Treated.Spells = 1000 },
		"no spell":      func(k *Kept) { k.Requests.Treated.Spells, k.Requests.Withheld.Spells = 0, 0 },
		"certain":       func(k *Kept) { k.Taken.Part = 100 },
		"impossible":    func(k *Kept) { k.Taken.Part = 0 },
	} {
		try(name, change)
	}
	node := e.Figures.Kept()
	node.Saved.Treated.Spells = math.MaxInt64
	if _, err := node.Figures(); err == nil {
		t.Error("more spells than float64 counts: taken")
	}
}
