package replay

import (
	"math"
	"slices"
	"time"

	"plimsoll/internal/sim"
)

// Reading is how the demand that a limit hid is read.
type Reading int

// The readings: the bounds of the demand.
const (
	Early Reading = iota // threads that stood would have gone on, up to the work that was done in the end
	Late                 // work came as it was done
)

const (
	grain    = 5 * time.Millisecond   // of wall time, a piece of work
	sliver   = 200 * time.Microsecond // of work that a late reading holds back, without which nothing would stand
	leastRun = 20 * time.Millisecond  // of wall time, to tell a rate by: the kernel counts to its tick
	slack    = 0.25                   // of a thread: the noise of a rate
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
	rate        float64
}

// episodes finds them.
func (s *Series) episodes(cpus float64) (list []episode) {
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
	usual := s.usual(list, cpus)
	for i := range list {
		if list[i].rate = usual; usual > 0 {
			if r, ran := s.rate(list[i]); ran >= 5*leastRun {
				list[i].rate = min(r, cpus)
			}
		}
	}
	return list
}

// rate is at which rate an episode ran in its places that begin and end throttled, and for how long it was seen.
func (s *Series) rate(e episode) (rate float64, ran time.Duration) {
	var used time.Duration
	for i := e.first + 1; i <= e.last && s.Places[i].Lost > 0; i++ {
		used += s.Places[i].Used
		ran += s.Period - s.Places[i].Lost
	}
	if ran < leastRun {
		return 0, ran
	}
	return used.Seconds() / ran.Seconds(), ran
}

// usual is the rate of all episodes together: the mean of the places that tell one. Where there is none it is the largest
// that any place shows.
func (s *Series) usual(list []episode, cpus float64) float64 {
	var used, ran float64
	for _, e := range list {
		if r, t := s.rate(e); r > 0 {
			used, ran = used+r*t.Seconds(), ran+t.Seconds()
		}
	}
	if ran > 0 {
		return max(min(used/ran, cpus), 0.05)
	}
	most := 0.05
	for _, p := range s.Places {
		if run := s.Period - p.Lost; run >= leastRun {
			most = max(most, p.Used.Seconds()/run.Seconds())
		}
	}
	return min(most, cpus)
}

// demand is when work came under a reading, and how fast it would have run, as segments in the order of time.
func (s *Series) demand(r Reading, cpus float64) (list []segment) {
	eps := s.episodes(cpus)
	left := eps
	for i := 0; i < len(s.Places); {
		if len(left) > 0 && i == left[0].first {
			list = append(list, s.held(left[0], r)...)
			i, left = left[0].last+1, left[1:]
			continue
		}
		if s.Places[i].Used > 0 {
			list = append(list, s.free(i, r, eps))
		}
		i++
	}
	return list
}

// free is the work of a place outside of episodes. Where it was in the place is not known.
func (s *Series) free(i int, r Reading, eps []episode) segment {
	used := s.Places[i].Used
	rate := math.Ceil(used.Seconds()/s.Period.Seconds() - slack)
	if len(eps) > 0 {
		rate = eps[0].rate
	}
	rate = max(rate, used.Seconds()/s.Period.Seconds(), 0.05)
	g := segment{time.Duration(i) * s.Period, used, rate}
	if r == Late {
		g.at += s.Period - time.Duration(float64(used)/rate)
	}
	return g
}

// ran are the recorded runs of an episode: of each place, from when on and how fast.
func (s *Series) ran(e episode) (list []segment) {
	for i := e.first; i <= e.last; i++ {
		p := s.Places[i]
		run := s.Period - p.Lost
		if p.Used <= 0 || run <= 0 {
			continue
		}
		rate := max(e.rate, p.Used.Seconds()/run.Seconds())
		g := segment{time.Duration(i) * s.Period, p.Used, rate}
		if i == e.first { // it ran until it stood
			g.at += max(0, run-time.Duration(float64(p.Used)/rate))
		}
		list = append(list, g)
	}
	return list
}

// held is the demand of an episode.
func (s *Series) held(e episode, r Reading) []segment {
	runs := s.ran(e)
	if r == Late {
		for i := 0; i+1 < len(runs); i++ {
			part := min(sliver, runs[i+1].work/2)
			runs[i].work += part
			runs[i+1].work -= part
		}
		return runs
	}
	var rest time.Duration // done later, until the end
	for _, g := range runs {
		rest += g.work
	}
	var ahead time.Duration // of what was done, by a demand that did not stand
	for k := range runs {
		g := &runs[k]
		i := int(g.at / s.Period)
		rest -= g.work
		could := time.Duration(e.rate * float64(s.Places[i].Lost))
		held := ahead + could
		if !e.open {
			held = min(held, rest)
		}
		g.work += held - ahead
		ahead = held
		if g.work <= 0 {
			continue
		}
		g.rate = max(g.rate, g.work.Seconds()/(time.Duration(i+1)*s.Period-g.at).Seconds())
	}
	return slices.DeleteFunc(runs, func(g segment) bool { return g.work <= 0 })
}

// load cuts segments into the jobs of a simulated load: as many at a time as there are threads at this rate.
func load(list []segment) (l sim.Load, jobs []sim.Job) {
	for _, g := range list {
		n := max(1, int(math.Ceil(g.rate-slack)))
		l.Threads = max(l.Threads, n)
		wall := time.Duration(float64(g.work) / g.rate)
		pieces := max(1, int((wall+grain-1)/grain))
		for k := range pieces {
			at := g.at + wall*time.Duration(k)/time.Duration(pieces)
			for range n {
				jobs = append(jobs, sim.Job{At: at, Cost: max(1, g.work/time.Duration(pieces*n))})
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b sim.Job) int { return int(a.At - b.At) })
	return sim.Script(l.Threads, jobs...), jobs
}
