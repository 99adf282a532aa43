package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	leastRun = 10 * time.Millisecond // of wall time, to tell a rate by: the kernel counts to its tick
	// After its period has ended a throttle lasts until the timer has come to each CPU. The record says 1 ms for less.
	blink = 2 * time.Millisecond
	least = 0.05             // a rate
	noise = 0.15             // of a rate, in threads
	trace = time.Millisecond // of CPU time in a place: no more is no work
	// of the time in which its group ran: a thread that ran for so long was there all the time
	whole = 0.75
)

// stint is work that one thread did in one place. Times are since the series' begin.
type stint struct {
	lane    int
	ran     time.Duration // when it was done from on, as recorded
	came    time.Duration // when it would have been without the limit, of a reading
	work    time.Duration
	follows bool // the thread had stood before it: it could have begun sooner
	// Of a thread that was alone: for how long it had nothing to do in this place.
	idle time.Duration
}

// episode is a run of throttled places, and the place after it that is not, or only in its first moment (onlyEnds).
// open: there is none, for the record ends or has a gap.
type episode struct {
	first, last int
	open        bool
	work        []stint // in the order of places and lanes
	standing    []stint // of an open one: the last of each thread that stands at its end
}

// episodes finds them.
func (s *Series) episodes() (list []episode) {
	for i := 0; i < len(s.Places); i++ {
		if s.Places[i].Lost == 0 {
			continue
		}
		e := episode{first: i}
		for i < len(s.Places) && s.Places[i].Lost > 0 && (i == e.first || !s.onlyEnds(i)) {
			i++
		}
		if e.last = i; i == len(s.Places) || s.Places[i].Unknown {
			e.last, e.open = i-1, true
		}
		list = append(list, e)
	}
	return list
}

// onlyEnds says whether all that is lost in a place is what the throttle of the one before took until it was ended.
func (s *Series) onlyEnds(i int) bool {
	return s.Places[i].Lost <= blink && (i+1 == len(s.Places) || s.Places[i+1].Lost == 0)
}

// threads is how many threads did its work.
func (e episode) threads() (n int) {
	for _, x := range e.work {
		n = max(n, x.lane)
	}
	return n
}

// history is what was done.
type history struct {
	episodes []episode
	free     []stint       // outside of them
	comings  comings       // of all its time
	usual    time.Duration // the mean use of a place
}

// history reads a series for a machine of so many CPUs.
func (s *Series) history(cpus float64) history {
	h := history{episodes: s.episodes()}
	rate := s.rate(h.episodes, cpus)
	h.comings = s.comings()
	known := time.Duration(0)
	for _, p := range s.Places {
		if !p.Unknown {
			known++
			h.usual += p.Used
		}
	}
	h.usual /= max(known, 1)
	next := 0
	for i, p := range s.Places {
		if next < len(h.episodes) && i > h.episodes[next].last {
			next++
		}
		if next < len(h.episodes) && i >= h.episodes[next].first {
			continue
		}
		if p.Used > 0 {
			h.free = append(h.free, s.outside(i, rate, cpus)...)
		}
	}
	for i := range h.episodes {
		s.share(&h.episodes[i], rate, cpus)
	}
	return h
}

// comings is how often new work comes in a place, on average, by the time since work last came. What comes
// independently of what came before, requests, comes as often at any time. What comes in turns,
// a batch or a collector, comes after a while only.
type comings []float64

const (
	bins   = 64
	widths = 1.25 // of a bin and the one before
)

// bin is that of so many places since work came.
func bin(age int) int { return min(int(math.Log(float64(max(age, 1)))/math.Log(widths)), bins-1) }

// comings looks at the empty places between runs of places with work, and at the first with work again. After the last
// run the load may have ended. Where no place is empty so soon after work came, it takes the next later ones.
func (s *Series) comings() comings {
	var places, came [bins]float64
	start, last := -1, -1 // of the latest run
	for i, p := range s.Places {
		switch {
		case p.Unknown:
			start, last = -1, i
		case p.Used <= trace && p.Lost == 0:
		default:
			again := last < i-1
			if again && start >= 0 {
				for at := last + 2; at <= i; at++ {
					places[bin(at-start)]++
				}
				came[bin(i-start)]++
			}
			if again || start < 0 {
				start = i
			}
			last = i
		}
	}
	list, rate := make(comings, bins), 0.0
	for b := bins - 1; b >= 0; b-- {
		if places[b] > 0 {
			rate = often(places[b:], came[b:])
		}
		list[b] = rate
	}
	return list
}

const (
	enough = 20 // places, to tell a rate by
	none   = 8  // with no work in any of so many, none comes so soon
)

// often is the rate of the first bin. Where it has few places, those of the next ones count too.
func often(places, came []float64) float64 {
	if came[0] == 0 && places[0] >= none {
		return 0
	}
	n, k := 0.0, 0.0
	for b := 0; b < len(places) && n < enough; b++ {
		n, k = n+places[b], k+came[b]
	}
	if k == 0 {
		return 0
	}
	return -math.Log(1 - (k+0.5)/(n+1)) // a rate of which little is known is finite
}

// next draws how many places after work came new work comes, most at most, where it comes so many times as often as
// usual: when a sum of the rates reaches an exponential number.
func (c comings) next(rng *rand.Rand, most, times float64) float64 {
	left := rng.ExpFloat64()
	for age := 0; float64(age) < most; age++ {
		rate := times * c[bin(age)]
		if left < rate {
			return float64(age) + left/rate
		}
		left -= rate
	}
	return most
}

// seen is the rate of a place that begins and ends throttled: its threads ran all the time in which they did not stand.
func (s *Series) seen(i int) (rate float64, ok bool) {
	if i == 0 || s.Places[i].Lost == 0 || s.Places[i-1].Lost == 0 || s.onlyEnds(i) {
		return 0, false
	}
	run := s.Period - s.Places[i].Lost
	return s.Places[i].Used.Seconds() / run.Seconds(), run >= leastRun && s.Places[i].Used > 0
}

// rate is that of all episodes: the mean of the places that show one. Where there is none it is the largest that any
// place may have had.
func (s *Series) rate(list []episode, cpus float64) float64 {
	var used, ran time.Duration
	for _, e := range list {
		for i := e.first; i <= e.last; i++ {
			if _, ok := s.seen(i); ok {
				used += s.Places[i].Used
				ran += s.Period - s.Places[i].Lost
			}
		}
	}
	if ran > 0 {
		return min(max(used.Seconds()/ran.Seconds(), least), cpus)
	}
	most := least
	for _, p := range s.Places {
		if run := s.Period - p.Lost; run >= leastRun {
			most = max(most, p.Used.Seconds()/run.Seconds())
		}
	}
	return min(most, cpus)
}

// outside is the work of a place outside of episodes. Where in the place it was is not known: from its begin.
func (s *Series) outside(i int, rate, cpus float64) (list []stint) {
	used := s.Places[i].Used
	n := int(max(math.Round(min(rate, cpus)), math.Ceil(used.Seconds()/s.Period.Seconds()-noise), 1))
	for lane := 1; lane <= n; lane++ {
		list = append(list, stint{lane: lane, ran: time.Duration(i) * s.Period, work: used / time.Duration(n)})
	}
	return list
}

// share divides the work of an episode among threads. A place that begins and ends throttled shows how many ran in
// it. A thread that ran in a part of the time only had just come, or was just done: what it does later came later. The
// first and the last place do not show their rates, and have those of the places beside them.
func (s *Series) share(e *episode, usual, cpus float64) {
	rate := usual
	for i := e.first; i <= e.last; i++ {
		if r, ok := s.seen(i); ok {
			rate = r
			break
		}
	}
	stands := map[int]int{} // by lane, the last work of a thread that stands, from 1
	for i := e.first; i <= e.last; i++ {
		p := s.Places[i]
		run := s.Period - p.Lost
		if p.Used <= 0 || run <= 0 {
			continue
		}
		if r, ok := s.seen(i); ok {
			rate = r
		}
		busy, parts := divide(p.Used, max(min(rate, cpus), p.Used.Seconds()/run.Seconds()))
		at := time.Duration(i) * s.Period
		if i == e.first { // they ran until they stood
			at += max(0, run-busy)
		}
		for k, work := range parts {
			lane := k + 1
			x := stint{lane: lane, ran: at, work: work, follows: stands[lane] > 0}
			if !x.follows {
				x.ran = at + max(0, busy-work)
			}
			x.came = x.ran
			if idle := run - busy; len(parts) == 1 && (x.follows || i == e.first) && idle > leastRun && work > trace {
				x.idle = idle
			}
			e.work = append(e.work, x)
			if x.follows && work.Seconds() < whole*busy.Seconds() { // it was done
				delete(stands, lane)
			} else {
				stands[lane] = len(e.work)
			}
		}
		for lane := range stands {
			if lane > len(parts) {
				delete(stands, lane)
			}
		}
	}
	if e.open {
		for _, at := range stands {
			e.standing = append(e.standing, e.work[at-1])
		}
		slices.SortFunc(e.standing, func(a, b stint) int { return a.lane - b.lane })
	}
}

// divide shares work at a rate out to threads, all but the last of which run all the time.
func divide(used time.Duration, rate float64) (busy time.Duration, parts []time.Duration) {
	n, over := math.Modf(rate)
	switch {
	case over < noise && n > 0 || over > 1-noise || n == 0:
		n = max(1, math.Round(rate))
		busy = time.Duration(float64(used) / n)
		for range int(n) {
			parts = append(parts, busy)
		}
		return busy, parts
	}
	busy = time.Duration(float64(used) / rate)
	for range int(n) {
		parts = append(parts, busy)
	}
	return busy, append(parts, used-time.Duration(n)*busy)
}
