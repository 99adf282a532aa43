package replay

import (
	"cmp"
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
	grain  = 5 * time.Millisecond   // a piece of work
	sliver = 200 * time.Microsecond // of work that a late reading holds back, without which nothing would stand
)

// demand is when work came under a reading, in the order of time.
func (s *Series) demand(h history, r Reading) (list []stint) {
	for _, x := range h.free {
		x.came = x.ran
		if r == Late { // at the end of its place
			x.came += max(0, s.Period-x.work)
		}
		list = append(list, x)
	}
	for _, e := range h.episodes {
		switch {
		case r == Late:
			list = append(list, late(e.work)...)
		case r == Early || e.open:
			list = append(list, s.early(e, 0)...)
		default:
			list = append(list, s.early(e, h.steady)...)
		}
	}
	slices.SortStableFunc(list, func(a, b stint) int { return cmp.Compare(a.came, b.came) })
	return list
}

// late has work come as it was done, but for a sliver of a thread that stood.
func late(work []stint) (list []stint) {
	ended := map[int]time.Duration{}
	for _, x := range work {
		x.came = x.ran
		if x.follows {
			part := min(sliver, x.work/2)
			list = append(list, stint{lane: x.lane, ran: x.ran, came: ended[x.lane], work: part})
			x.ran, x.came, x.work = x.ran+part, x.came+part, x.work-part
		}
		ended[x.lane] = x.came + x.work
		list = append(list, x)
	}
	return list
}

// early takes the time out in which threads stood. What comes at a steady rate in any case was not all there at the begin: so
// much of the work comes no sooner. In an episode that never ended threads go on.
func (s *Series) early(e episode, steady float64) (list []stint) {
	var rest, end time.Duration
	for _, x := range e.work {
		rest += x.work
		end = max(end, x.ran+x.work)
	}
	ended := map[int]time.Duration{}
	for _, x := range e.work {
		x.came = x.ran
		if x.follows {
			x.came = ended[x.lane]
			if steady > 0 {
				x.came = max(x.came, min(x.ran, end-time.Duration(float64(rest)/steady)))
			}
		}
		ended[x.lane] = x.came + x.work
		rest -= x.work
		list = append(list, x)
	}
	end = time.Duration(e.last+1) * s.Period
	for _, x := range e.standing {
		if at := ended[x.lane]; at < end {
			list = append(list, stint{lane: x.lane, ran: end, came: at, work: end - at, never: true})
		}
	}
	return list
}

// load cuts work into the jobs of a simulated load. A thread's work is its own: where it waits, another does not take it over.
func load(list []stint) (sim.Load, []sim.Job) {
	var jobs []sim.Job
	threads := 0
	for _, x := range list {
		threads = max(threads, x.lane)
		pieces := time.Duration(max(1, (x.work+grain-1)/grain))
		for k := range pieces {
			jobs = append(jobs, sim.Job{At: x.came + x.work*k/pieces, Cost: max(1, x.work*(k+1)/pieces-x.work*k/pieces), Lane: x.lane})
		}
	}
	slices.SortStableFunc(jobs, func(a, b sim.Job) int { return cmp.Compare(a.At, b.At) })
	return sim.Script(threads, jobs...), jobs
}
