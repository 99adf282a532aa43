package replay

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"plimsoll/internal/flight"
	"plimsoll/internal/sim"
)

// Reading is how the demand that a limit hid is read: one of the kinds, and of the likely ones which.
type Reading struct {
	kind kind
	n    uint64
}

type kind int

// The kinds. Early and Late bound the demand.
const (
	likely kind = iota // what came anew came by chance
	early              // threads that stood would have gone on, up to the work that was done in the end
	late               // work came as it was done
)

// samples is how many likely readings there are.
const samples = 8

func readings() (list []Reading) {
	for n := range uint64(samples) {
		list = append(list, Reading{likely, n})
	}
	return append(list, Reading{kind: early}, Reading{kind: late})
}

const (
	grain  = 5 * time.Millisecond   // a piece of work
	sliver = 200 * time.Microsecond // of work that comes before the rest, without which nothing would stand
)

// demand is when work came under a reading, in the order of time. The seed is that of chance.
func (s *Series) demand(h history, r Reading, seed uint64) (list []stint) {
	name := fnv.New64()
	_, _ = name.Write([]byte(s.Cgroup)) // never fails
	rng := rand.New(rand.NewPCG(seed+r.n, name.Sum64()))
	for _, x := range h.free {
		x.came = x.ran
		if r.kind == late { // at the end of its place
			x.came += max(0, s.Period-x.work)
		}
		list = append(list, x)
	}
	for _, e := range h.episodes {
		switch {
		case r.kind == late:
			list = append(list, retimed(e.work)...)
		case r.kind == early || e.open:
			work := slices.Clone(e.work)
			for i := range work {
				work[i].came = 0
			}
			list = append(list, retimed(work)...)
			list = append(list, s.goesOn(e)...)
		default:
			for _, w := range e.spells(h, s.Period, rng) {
				list = append(list, retimed(s.parts(w, w.arrivals(h, e.threads(), s.Period, rng)))...)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b stint) int { return cmp.Compare(a.came, b.came) })
	return list
}

// retimed has the work of threads that stood come when it came, and not before they had done what they did before. Of
// what comes later than that a sliver comes then: else nothing would have stood.
func retimed(work []stint) (list []stint) {
	ended := map[int]time.Duration{} // by lane
	for _, x := range work {
		at := x.came
		if x.came = x.ran; x.follows {
			if x.came = max(ended[x.lane], at); x.came > ended[x.lane] {
				part := x
				part.came, part.work = ended[x.lane], min(sliver, x.work/2)
				list = append(list, part)
				x.ran, x.came, x.work = x.ran+part.work, x.came+part.work, x.work-part.work
			}
		}
		ended[x.lane] = x.came + x.work
		list = append(list, x)
	}
	return list
}

// goesOn is what the threads that stand as an open episode ends would have done until then, had they stood at no time.
func (s *Series) goesOn(e episode) (list []stint) {
	ended := map[int]time.Duration{}
	for _, x := range e.work {
		from := x.ran
		if x.follows {
			from = ended[x.lane]
		}
		ended[x.lane] = from + x.work
	}
	end := time.Duration(e.last+1) * s.Period
	for _, x := range e.standing {
		if at := ended[x.lane]; at < end {
			list = append(list, stint{lane: x.lane, ran: end, came: at, work: end - at})
		}
	}
	return list
}

// Pieces is what a replay of rows holds in memory: the periods of a time of each container, and the pieces of its work.
// Undone are to be added.
func Pieces(rows []flight.Minute, length time.Duration) (n int64) {
	counted := map[string]bool{}
	for i := range rows {
		m := &rows[i]
		if n += m.UsedUs / grain.Microseconds(); !counted[m.Cgroup] {
			counted[m.Cgroup] = true
			n += length.Microseconds() / int64(m.PeriodUs)
		}
	}
	return n
}

// Undone are the pieces of work that was not done in a time, but would have been in an open episode (goesOn).
func Undone(list []*Series, cpus int) (n int64) {
	for _, s := range list {
		for _, e := range s.history(float64(cpus)).episodes {
			if !e.open {
				continue
			}
			for _, x := range s.goesOn(e) {
				n += int64(x.work / grain)
			}
		}
	}
	return n
}

// load cuts work into the jobs of a simulated load. A thread's work is its own: where it waits,
// another does not take it over.
func load(list []stint) (sim.Load, []sim.Job) {
	var jobs []sim.Job
	threads := 0
	for _, x := range list {
		threads = max(threads, x.lane)
		pieces := time.Duration(max(1, (x.work+grain-1)/grain))
		for k := range pieces {
			jobs = append(jobs, sim.Job{At: x.came + x.work*k/pieces, Cost: max(1, x.work*(k+1)/pieces-x.work*k/pieces),
				Lane: x.lane})
		}
	}
	slices.SortStableFunc(jobs, func(a, b sim.Job) int { return cmp.Compare(a.At, b.At) })
	return sim.Script(threads, jobs...), jobs
}
