package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/internal/sim"
)

// Reading is how the demand that a limit hid is read.
type Reading int

// The readings. Early and Late bound the demand.
const (
	Likely Reading = iota // as Early, but for what comes all the time
	Early                 // threads that stood would have gone on, up to the work that was done in the end
	Late                  // work came as it was done
)

func readings() []Reading { return []Reading{Likely, Early, Late} }

const (
	grain    = 5 * time.Millisecond   // of wall time, a piece of work
	sliver   = 200 * time.Microsecond // of work that a late reading holds back, without which nothing would stand
	leastRun = 10 * time.Millisecond  // of wall time, to tell a rate by: the kernel counts to its tick
	least    = 0.05                   // a rate
)

// segment is work that runs at a rate, in CPUs, from an instant on; times are since Begin.
type segment struct {
	at   time.Duration
	work time.Duration
	rate float64
}

func (g segment) end() time.Duration { return g.at + time.Duration(float64(g.work)/g.rate) }

// episode is a run of throttled places, and the place after it that is not. open: there is none, for the record ends or has a gap.
type episode struct {
	first, last int
	open        bool
}

// episodes finds them.
func (s *Series) episodes() (list []episode) {
	for i := 0; i < len(s.Places); i++ {
		if s.Places[i].Lost == 0 {
			continue
		}
		e := episode{first: i}
		for i < len(s.Places) && s.Places[i].Lost > 0 {
			i++
		}
		if e.last = i; i == len(s.Places) || s.Places[i].Unknown {
			e.last, e.open = i-1, true
		}
		list = append(list, e)
	}
	return list
}

// history is what was done, in the order of time: the runs of episodes, and those of places outside of them.
type history struct {
	episodes []episode
	runs     [][]segment // of each episode
	free     []segment   // outside
	steady   float64     // CPUs that are used outside of episodes, on average
	rate     float64     // of all episodes
}

// history reads a series for a machine of so many CPUs.
func (s *Series) history(cpus float64) history {
	h := history{episodes: s.episodes()}
	h.rate = s.rate(h.episodes, cpus)
	next, outside := 0, time.Duration(0)
	var used time.Duration
	for i := 0; i < len(s.Places); {
		if next < len(h.episodes) && i == h.episodes[next].first {
			h.runs = append(h.runs, s.ran(h.episodes[next], h.rate, cpus))
			i = h.episodes[next].last + 1
			next++
			continue
		}
		if p := s.Places[i]; !p.Unknown {
			outside, used = outside+s.Period, used+p.Used
			if p.Used > 0 {
				h.free = append(h.free, s.outside(i, h.rate, cpus))
			}
		}
		i++
	}
	if outside >= time.Second {
		h.steady = used.Seconds() / outside.Seconds()
	}
	return h
}

// seen is the rate of a place that begins and ends throttled: its threads ran all the time in which they did not stand.
func (s *Series) seen(i int) (rate float64, ok bool) {
	if i == 0 || s.Places[i].Lost == 0 || s.Places[i-1].Lost == 0 {
		return 0, false
	}
	run := s.Period - s.Places[i].Lost
	return s.Places[i].Used.Seconds() / run.Seconds(), run >= leastRun && s.Places[i].Used > 0
}

// rate is that of all episodes: the mean of the places that show one. Where there is none it is the largest that any place may have had.
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

// ran are the runs of an episode: of each place, from when on and how fast. The first and the last place do not show their rates:
// they have those of the places beside them.
func (s *Series) ran(e episode, usual, cpus float64) (list []segment) {
	rate := usual
	for i := e.first; i <= e.last; i++ {
		if r, ok := s.seen(i); ok {
			rate = r
			break
		}
	}
	for i := e.first; i <= e.last; i++ {
		p := s.Places[i]
		run := s.Period - p.Lost
		if p.Used <= 0 || run <= 0 {
			continue
		}
		if r, ok := s.seen(i); ok {
			rate = r
		}
		g := segment{time.Duration(i) * s.Period, p.Used, max(min(rate, cpus), p.Used.Seconds()/run.Seconds())}
		if i == e.first { // it ran until it stood
			g.at += max(0, run-time.Duration(float64(p.Used)/g.rate))
		}
		list = append(list, g)
	}
	return list
}

// outside is the work of a place outside of episodes. Where in the place it was is not known: from its begin.
func (s *Series) outside(i int, rate, cpus float64) segment {
	used := s.Places[i].Used
	mean := used.Seconds() / s.Period.Seconds()
	if rate == 0 {
		rate = math.Ceil(mean)
	}
	return segment{time.Duration(i) * s.Period, used, max(min(rate, cpus), mean, least)}
}

// demand is when work came under a reading, and how fast it would have run, in the order of time.
func (s *Series) demand(h history, r Reading) (list []segment) {
	for _, g := range h.free {
		if r == Late { // at the end of its place
			g.at += max(0, g.at/s.Period*s.Period+s.Period-g.end())
		}
		list = append(list, g)
	}
	for i, e := range h.episodes {
		switch runs := slices.Clone(h.runs[i]); {
		case len(runs) == 0:
		case r == Late:
			list = append(list, late(runs)...)
		default:
			end := time.Duration(e.last+1) * s.Period
			steady := h.steady
			if r == Early || e.open {
				steady = 0
			}
			list = append(list, early(runs, steady)...)
			if last := list[len(list)-1]; e.open && last.end() < end {
				list = append(list, segment{last.end(), time.Duration(last.rate * float64(end-last.end())), last.rate})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	return list
}

// late has work come as it was done, but for a sliver that stood.
func late(runs []segment) []segment {
	for i := 0; i+1 < len(runs); i++ {
		part := min(sliver, runs[i+1].work/2)
		runs[i].work += part
		runs[i+1].work -= part
	}
	return runs
}

// early takes the time out in which a group stood: each run begins as soon as the one before it has ended. What comes at a steady rate
// in any case is not all there at the begin: so much of the work comes no sooner.
func early(runs []segment, steady float64) []segment {
	var rest time.Duration
	for _, g := range runs {
		rest += g.work
	}
	end, free := runs[len(runs)-1].end(), runs[0].at
	for i := range runs {
		g := &runs[i]
		at := free
		if steady > 0 {
			at = max(at, end-time.Duration(float64(rest)/steady))
		}
		g.at = min(g.at, at)
		free = g.end()
		rest -= g.work
	}
	return runs
}

// load cuts segments into the jobs of a simulated load. A rate between two whole numbers is that of a thread that runs for a part of
// the time. A thread's work is its own: where it waits, another does not take it over.
func load(list []segment) (sim.Load, []sim.Job) {
	var jobs []sim.Job
	threads := 0
	for _, g := range list {
		wall := g.end() - g.at
		pieces := time.Duration(max(1, (wall+grain-1)/grain))
		for k := range pieces {
			at, left := g.at+wall*k/pieces, g.work/pieces
			for lane := 1; left > 0; lane++ {
				cost := min(left, max(wall/pieces, 1))
				if left-cost < cost/100 { // a rounding
					cost = left
				}
				jobs = append(jobs, sim.Job{At: at, Cost: cost, Lane: lane})
				left -= cost
				threads = max(threads, lane)
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b sim.Job) int { return cmp.Compare(a.At, b.At) })
	return sim.Script(threads, jobs...), jobs
}
