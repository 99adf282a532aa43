package receipt

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestWithhold: the part is met, the same seed gives the same spells, and each of seed, container, begin and number
// matters.
func TestWithhold(t *testing.T) {
	for _, part := range []float64{0.001, 0.01, 0.1, 0.5} {
		const n = 200_000
		held := 0
		for i := range uint64(n) {
			if Withhold(1, "/a 64", time.Time{}, i, part) {
				held++
			}
		}
		if sigma := math.Sqrt(n * part * (1 - part)); math.Abs(float64(held)-n*part) > 4*sigma {
			t.Errorf("%v of %d: %d", part, n, held)
		}
	}
	draw := func(seed uint64, container string, begun int64) (bits [64]bool) {
		for i := range bits {
			bits[i] = Withhold(seed, container, time.Unix(0, begun), uint64(i), 0.5)
		}
		return bits
	}
	one := draw(1, "/a 64", 1)
	if one != draw(1, "/a 64", 1) {
		t.Error("the same seed gives other spells")
	}
	if one == draw(2, "/a 64", 1) || one == draw(1, "/a 128", 1) || one == draw(1, "/a 64", 2) {
		t.Error("another seed, container or begin gives the same spells")
	}
	if Withhold(1, "/a", time.Time{}, 1, 0) {
		t.Error("withheld at 0")
	}
}

// line drives an experiment along a line of time, window by window.
type line struct {
	*Experiment
	now time.Time
}

// start begins an experiment whose first spell is withheld, or treated.
func start(t *testing.T, withheld bool) *line {
	t.Helper()
	t0 := time.Unix(1_700_000_000, 0)
	for seed := range uint64(100) {
		if Withhold(seed, "/a", t0, 0, 0.5) == withheld {
			l := &line{New(0.5, seed, "/a", t0), t0}
			l.Begin(t0, Meter{At: t0, Known: true})
			return l
		}
	}
	t.Fatal("no seed")
	return nil
}

// window observes a window of a group with a limit of half a CPU.
func (l *line) window(length, used, lost time.Duration) (Outcome, bool) {
	from := l.now
	l.now = l.now.Add(length)
	return l.Observe(Window{From: from, To: l.now, Used: used, Lost: lost, Quota: 50 * ms, Period: 100 * ms,
		Meter: Meter{At: l.now, Node: 3 * l.now.Sub(l.Since), Own: l.now.Sub(l.Since), Known: true}})
}

// TestSpell: a spell lasts until two periods in a row are idle; a health check does not keep it on, and a throttle
// does, also one in which nothing runs. What the others used comes from its first 100 ms.
func TestSpell(t *testing.T) {
	for _, withheld := range []bool{true, false} {
		l := start(t, withheld)
		if l.Withheld() != withheld || !l.Running(l.now) {
			t.Fatalf("withheld: %v, running: %v", l.Withheld(), l.Running(l.now))
		}
		for _, w := range [][3]time.Duration{{90 * ms, 50 * ms, 40 * ms}, {90 * ms, 0, 0}, {90 * ms, 0, 70 * ms},
			{90 * ms, ms, 0}, {90 * ms, 2 * ms, 0}} {
			if o, over := l.window(w[0], w[1], w[2]); over {
				t.Fatalf("over: %+v", o)
			}
		}
		o, over := l.window(90*ms, 0, 0)
		want := Outcome{Withheld: withheld, Part: 0.5, Lost: 110 * ms, Others: 0.2, Measured: true, Length: 540 * ms}
		if o.Others = math.Round(o.Others*1e6) / 1e6; !over || o != want {
			t.Errorf("over: %v, %+v, want %+v", over, o, want)
		}
		if l.Running(l.now) || l.Withheld() {
			t.Error("it goes on")
		}
		if _, over := l.window(time.Second, 0, 0); over {
			t.Error("over again")
		}
	}
}

// TestLongSpell: a spell that does not end is cut after two seconds. After a treated one the next may begin at once;
// after a withheld one when the container was idle, or after five seconds. One that is aborted leaves as much behind.
func TestLongSpell(t *testing.T) {
	for _, withheld := range []bool{true, false} {
		for after, begins := range map[time.Duration]bool{0: !withheld, rest - ms: !withheld, rest: true} {
			l := cutSpell(t, withheld)
			if l.Withheld() || !l.Running(l.now) || l.Watched() {
				t.Error("a spell that was cut: its rest is to be treated, and nothing of it washed out")
			}
			if l.Begin(l.now.Add(after), Meter{}); l.Watched() != begins {
				t.Errorf("withheld: %v, and the next begins %v after it: %v", withheld, after, l.Watched())
			}
			if treated, held := l.Saved.Arms(); treated+held != 1 || held == 1 != withheld {
				t.Errorf("%d treated, %d withheld", treated, held)
			}
			l = start(t, withheld)
			l.Abort(l.now)
			if l.Watched() || l.Aborted != 1 {
				t.Error("not aborted")
			}
			if l.Begin(l.now.Add(after), Meter{}); l.Watched() != begins {
				t.Errorf("withheld and aborted: %v, and the next begins %v after it: %v", withheld, after, l.Watched())
			}
		}
	}
	l := cutSpell(t, true)
	l.window(100*ms, 0, 0)
	if l.Begin(l.now, Meter{}); l.Watched() {
		t.Error("a spell begins after half an idle stretch")
	}
	l.window(100*ms, 0, 0)
	if l.Begin(l.now, Meter{}); !l.Watched() {
		t.Error("none after a whole one")
	}
}

// cutSpell drives a spell until it is cut.
func cutSpell(t *testing.T, withheld bool) *line {
	t.Helper()
	l := start(t, withheld)
	for i := range 100 {
		if o, over := l.window(90*ms, 50*ms, 80*ms); over {
			if o.Length < Longest || o.Length > Longest+100*ms || o.Lost != time.Duration(i+1)*80*ms {
				t.Errorf("%+v after %d windows", o, i+1)
			}
			return l
		}
	}
	t.Fatal("it is not cut")
	return nil
}

// TestMismatch: where spells of one arm are lost, no figure counts.
func TestMismatch(t *testing.T) {
	var f, lossy Figures
	for i := range uint64(20_000) {
		o := Outcome{Withheld: Withhold(1, "/a", time.Time{}, i, 0.1), Part: 0.1, Lost: 50 * ms}
		f.Add(o)
		if !o.Withheld || i%5 != 0 { // a fifth of the withheld ones is lost
			lossy.Add(o)
		}
	}
	if f.Mismatch() || !lossy.Mismatch() || lossy.Verdict() != Invalid {
		t.Errorf("all: %v, with losses: %v, %s", f.Mismatch(), lossy.Mismatch(), lossy.Verdict())
	}
}

// TestHarmOfNeighbours: a container that gains less than its neighbours lose is withdrawn, and begins no further spell.
func TestHarmOfNeighbours(t *testing.T) {
	l := start(t, true)
	for i := uint64(0); i < 3000 && l.harm == ""; i++ {
		l.on = &spell{withheld: i%2 == 0, begun: l.now, before: Meter{At: l.now, Known: true}}
		others := 150 * ms
		if i%2 != 0 {
			others -= 60 * ms
		}
		from := l.now
		l.now = l.now.Add(100 * ms)
		l.Observe(Window{From: from, To: l.now, Used: 50 * ms, Quota: 50 * ms, Period: 100 * ms,
			Meter: Meter{At: l.now, Node: others, Known: true}})
		l.now = l.now.Add(300 * ms)
		l.Observe(Window{From: from.Add(100 * ms), To: l.now, Quota: 50 * ms, Period: 100 * ms})
	}
	if l.Withdrawn() != HarmsRest {
		t.Fatalf("%q: saved %+v, taken %+v", l.Withdrawn(), l.Saved, l.Taken)
	}
	if l.Begin(l.now, Meter{}); l.Watched() {
		t.Error("a spell after the withdrawal")
	}
}

// TestIntervalIsSettled: as many spells as there are, none of the interval is given before each arm has enough.
func TestIntervalIsSettled(t *testing.T) {
	var e Estimate
	for range 1000 {
		e.Add(false, 0.01, 0.1)
	}
	for i := range Least {
		if _, _, ok := e.Interval(Alpha); ok {
			t.Fatalf("an interval with %d spells", i)
		}
		e.Add(true, 0.01, 0.2)
	}
	low, high, ok := e.Interval(Alpha)
	l99, h99, _ := e.Interval(acts)
	if !ok || low >= high || l99 >= low || h99 <= high {
		t.Errorf("%v: %v to %v; at 99 %% %v to %v", ok, low, high, l99, h99)
	}
}
