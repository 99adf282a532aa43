package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestDelayThatIsRead: the p99 delay that is read of the record of a limited service is what its limit cost it, on
// average over minutes of which each hangs on one or two episodes.
func TestDelayThatIsRead(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		cost      time.Duration
		threads   int
	}{{20, 10 * ms, 1}, {5, 40 * ms, 1}, {25, 12 * ms, 2}, {8, 40 * ms, 2}} {
		load := sim.Poisson(c.perSecond, sim.Exponential(c.cost), c.threads)
		const minutes = 16
		var was, read time.Duration
		for seed := range uint64(minutes) {
			s, limited := recordedAt(t, 30*ms*time.Duration(c.threads), load, strategy.None, seed)
			_, free := recordedAt(t, time.Second, load, strategy.None, seed)
			o, h := minute(), s.history(4)
			was += percentile(later(limited, free), 0.99) / minutes
			for _, r := range readings()[:samples] {
				read += percentile(s.delays(s.demand(h, r, seed), o), 0.99) / minutes / samples
			}
		}
		t.Logf("%+v: delayed by %v, read %v", c, was, read)
		if !near(read, was, 0.2, 0) {
			t.Errorf("%+v: delayed by %v, read %v", c, was, read)
		}
	}
}

// TestSpells: a thread that was busy all along has at no time had less to do than it did, but for what is moved in a
// place that the turn takes apart.
func TestSpells(t *testing.T) {
	s := recorded(t, sim.Poisson(10, sim.Exponential(40*ms), 1), strategy.None, 1)
	h, rng, seen := s.history(4), rand.New(rand.NewPCG(1, 1)), 0
	for _, e := range h.episodes {
		if e.open {
			continue
		}
		for _, w := range e.spells(h, s.Period, rng) {
			begin, end, work := w.span()
			list := w.arrivals(h, 1, s.Period, rng)
			if list[0].at != begin || list[len(list)-1].upTo.Round(time.Microsecond) != work.Round(time.Microsecond) {
				t.Fatalf("%v of work from %v to %v: %v", work, begin, end, list)
			}
			progress := w.progress(s.Period)
			for i, a := range list[1:] {
				seen++
				if done := progress(a.at); list[i].upTo < done-10*ms || a.at < list[i].at {
					t.Errorf("%v came until %v, and %v was done; then more at %v", list[i].upTo, list[i].at, done, a.at)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d comings", seen)
	}
}

// TestTurnIsOneSpell: what comes in turns is not divided, also where a turn fills most of the time until the next one.
func TestTurnIsOneSpell(t *testing.T) {
	s := series()
	s.Places = make([]Place, 600)
	for i := range s.Places {
		switch at := i % 43; {
		case at == 0:
			s.Places[i] = Place{Used: 50 * ms, Lost: 30 * ms}
		case at < 33:
			s.Places[i] = Place{Used: 50 * ms, Lost: 50 * ms}
		case at == 33:
			s.Places[i] = Place{Used: 20 * ms}
		}
	}
	h, rng := s.history(4), rand.New(rand.NewPCG(1, 1))
	if len(h.episodes) != 14 {
		t.Fatalf("%d episodes", len(h.episodes))
	}
	for _, e := range h.episodes {
		list := e.spells(h, s.Period, rng)
		if len(list) != 1 || len(list[0].arrivals(h, 1, s.Period, rng)) != 1 {
			t.Errorf("%d spells, the first came in %v", len(list), list[0].arrivals(h, 1, s.Period, rng))
		}
	}
	s = series([2]int{50, 75}, [2]int{50, 75}, [2]int{20, 0})
	h = s.history(4)
	if list := h.episodes[0].spells(h, s.Period, rng); len(list) != 2 || len(list[0]) != 3 || len(list[1]) != 3 {
		t.Errorf("of two threads: %v", list)
	}
}

// TestComingsBesideGaps: what was not recorded says nothing of how often work comes, nor does the quiet after the last.
func TestComingsBesideGaps(t *testing.T) {
	s := series()
	s.Places = make([]Place, 1000)
	s.Places[0].Used = 20 * ms
	for i := 1; i < 100; i++ {
		s.Places[i].Unknown = true
	}
	for i := 100; i < 190; i += 3 {
		s.Places[i].Used = 20 * ms
	}
	h := s.history(4)
	if h.comings[bin(3)] < 4 || h.comings[bin(100)] != 0 || h.usual != 31*20*ms/901 {
		t.Errorf("comes %.2f times a place of age 3, %.2f of age 100; %v a place", h.comings[bin(3)],
			h.comings[bin(100)], h.usual)
	}
}

// TestEndOfAThrottle: a throttle that ends a moment after its period is not one of the next place, which does not show
// by its rate how many threads ran.
func TestEndOfAThrottle(t *testing.T) {
	for _, c := range []struct {
		name   string
		places [][2]int
		last   int
		work   string
	}{
		{"the last place", [][2]int{{50, 75}, {50, 75}, {20, 1}, {0, 0}}, 2,
			"1: 0 0 25; 2: 0 0 25; 1: 100 100 25; 2: 100 100 25; 1: 200 200 10; 2: 200 200 10"},
		{"hardly anything was left", [][2]int{{50, 75}, {50, 75}, {2, 1}, {0, 0}}, 2,
			"1: 0 0 25; 2: 0 0 25; 1: 100 100 25; 2: 100 100 25; 1: 200 200 1; 2: 200 200 1"},
		{"it goes on", [][2]int{{50, 75}, {40, 1}, {50, 75}, {20, 0}}, 3, ""},
		{"it began at the end", [][2]int{{50, 1}, {50, 75}, {20, 0}}, 2, ""},
		{"a short one", [][2]int{{50, 1}, {20, 0}}, 1, ""},
	} {
		h := series(c.places...).history(4)
		got := h.episodes[0]
		if len(h.episodes) != 1 || got.last != c.last || c.work != "" && told(got.work) != c.work {
			t.Errorf("%s: %d episodes, the first until place %d: %s", c.name, len(h.episodes), got.last, told(got.work))
		}
	}
}

// TestLongSpellIsMany: of a spell in which more was done than usual more came, by the root of it. Each of two threads
// has half of what comes.
func TestLongSpellIsMany(t *testing.T) {
	var w spell
	for i := range time.Duration(10) {
		w = append(w, stint{lane: 1, ran: i * 100 * ms, work: 50 * ms})
	}
	w[9].work = 100 * ms // so that it lasts for ten places
	once := make(comings, bins)
	for i := range once {
		once[i] = 1
	}
	for _, c := range []struct {
		usual   time.Duration
		threads int
		comings float64
	}{{55 * ms, 1, 10}, {55 * ms / 4, 1, 20}, {55 * ms, 2, 10 / math.Sqrt2}, {220 * ms, 1, 5}} {
		rng, n := rand.New(rand.NewPCG(1, 1)), 0
		const draws = 2000
		for range draws {
			n += len(w.arrivals(history{comings: once, usual: c.usual}, c.threads, 100*ms, rng)) - 1
		}
		if got := float64(n) / draws; math.Abs(got-c.comings) > 0.3 {
			t.Errorf("%+v: came %v times after the first", c, got)
		}
	}
}
