package replay

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

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
			list = append(list, e.retimed(func(x stint) time.Duration { return x.ran })...)
		case r.kind == early || e.open:
			list = append(list, e.retimed(func(stint) time.Duration { return 0 })...)
			list = append(list, s.goesOn(e)...)
		default:
			list = append(list, e.retimed(s.byChance(e.arrivals(h.comings, s.Period, rng)))...)
		}
	}
	slices.SortStableFunc(list, func(a, b stint) int { return cmp.Compare(a.came, b.came) })
	return list
}

// arrival is the time from which on work comes: all up to so much of it, in the order in which it was done.
type arrival struct{ at, upTo time.Duration }

// arrivals draws when the work of an episode came, and how much of it at a time: some at the begin, and more so long
// after each other as new work is seen to come. The amounts do not depend on that,
// and their sum is that of the episode.
func (e episode) arrivals(c comings, period time.Duration, rng *rand.Rand) (list []arrival) {
	var all, end time.Duration
	for _, x := range e.work {
		all += x.work
		end = max(end, x.ran+x.work)
	}
	if len(e.work) == 0 {
		return nil
	}
	begin, sum := e.work[0].ran, 0.0
	most := float64(end-begin) / float64(period)
	for at := 0.0; len(list) == 0 || at < most; at += c.next(rng, most) {
		sum += rng.ExpFloat64()
		list = append(list, arrival{begin + time.Duration(at*float64(period)),
			time.Duration(sum * float64(time.Second))})
	}
	for i := range list {
		list[i].upTo = time.Duration(float64(list[i].upTo) * all.Seconds() / sum)
	}
	return list
}

// byChance says when work came by arrivals. It is asked in the order in which the work was done. None came later than
// its thread was seen to be there in the place in which it was done: as the place's throttle began.
func (s *Series) byChance(arrivals []arrival) func(stint) time.Duration {
	var done time.Duration
	return func(x stint) time.Duration {
		for len(arrivals) > 1 && arrivals[0].upTo <= done {
			arrivals = arrivals[1:]
		}
		done += x.work
		place := x.ran / s.Period
		there := (place+1)*s.Period - s.Places[place].Lost - x.work
		return min(arrivals[0].at, max(x.ran, there))
	}
}

// retimed has the work of threads that stood come at a time, and not before they had done what they did before. Of what
// comes later than that a sliver comes then: else nothing would have stood.
func (e episode) retimed(came func(stint) time.Duration) (list []stint) {
	ended := map[int]time.Duration{} // by lane
	for _, x := range e.work {
		at := came(x)
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
			list = append(list, stint{lane: x.lane, ran: end, came: at, work: end - at, never: true})
		}
	}
	return list
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
