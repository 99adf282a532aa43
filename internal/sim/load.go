package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Forever is the cost of a job that never ends: a spinning thread.
const Forever = never

// Job is a piece of work for one thread.
type Job struct {
	At   time.Duration // when it arrives, as time since SetLoad
	Cost time.Duration // CPU time it takes; Forever for one that only For ends
	For  time.Duration // it goes after this wall time, done or not; 0 when it stays until done
	Lane int           // the jobs of a lane run one after the other, as the work of one thread; 0: any thread takes it
}

// Load is a stream of demands: jobs in the order of their arrival, of which at most Threads run at once; the others
// wait in line. The zero value has no jobs. Jobs starts the stream, with the group's own source of chance; the function
// that it returns yields the next job until there is none.
type Load struct {
	Threads int
	Jobs    func(*rand.Rand) func() (Job, bool)
}

// Cost draws what a job costs.
type Cost func(*rand.Rand) time.Duration

// Fixed is the same cost for all jobs.
func Fixed(d time.Duration) Cost { return func(*rand.Rand) time.Duration { return d } }

// Exponential is a cost with this mean and as much spread.
func Exponential(mean time.Duration) Cost {
	return func(r *rand.Rand) time.Duration { return 1 + time.Duration(r.ExpFloat64()*float64(mean)) }
}

// Spin is a number of threads that are always runnable.
func Spin(threads int) Load {
	jobs := make([]Job, threads)
	for i := range jobs {
		jobs[i].Cost = Forever
	}
	return Script(threads, jobs...)
}

// Script is exactly these jobs, in order of arrival.
func Script(threads int, jobs ...Job) Load {
	return Load{Threads: threads, Jobs: func(*rand.Rand) func() (Job, bool) {
		i := 0
		return func() (Job, bool) {
			if i == len(jobs) {
				return Job{}, false
			}
			i++
			return jobs[i-1], true
		}
	}}
}

// Poisson is an open-loop service: so many jobs a second on average, at times that do not depend on each other.
func Poisson(perSecond float64, cost Cost, threads int) Load {
	return Load{Threads: threads, Jobs: func(r *rand.Rand) func() (Job, bool) {
		var at time.Duration
		return func() (Job, bool) {
			at += time.Duration(r.ExpFloat64() / perSecond * float64(time.Second))
			return Job{At: at, Cost: cost(r)}, true
		}
	}}
}

// Periodic is one job after each interval, the first at once.
func Periodic(every time.Duration, cost Cost, threads int) Load {
	return Load{Threads: threads, Jobs: func(r *rand.Rand) func() (Job, bool) {
		at := -every
		return func() (Job, bool) {
			at += every
			return Job{At: at, Cost: cost(r)}, true
		}
	}}
}

// OnOff is a number of threads that are runnable for a time, and then asleep for a time, by the wall clock.
func OnOff(on, off time.Duration, threads int) Load {
	return Load{Threads: threads, Jobs: func(*rand.Rand) func() (Job, bool) {
		n := 0
		return func() (Job, bool) {
			at := time.Duration(n/threads) * (on + off)
			n++
			return Job{At: at, Cost: Forever, For: on}, true
		}
	}}
}

// Response is one job that is done.
type Response struct {
	Arrived, Done time.Time
	Cost          time.Duration
}

// Latency is the time from the intended start to the end, waiting in line included.
func (r Response) Latency() time.Duration { return r.Done.Sub(r.Arrived) }

// source is a load at work in a group.
type source struct {
	rng       *rand.Rand
	threads   int
	stream    func() (Job, bool)
	base      time.Duration // when the load began
	next      Job           // the next to arrive; At is absolute, never when there is none
	serving   []served
	waiting   []served
	responses []completed
}

type served struct {
	arrived, cost, left time.Duration
	until               time.Duration // absolute; never when it stays
	lane                int
}

type completed struct{ arrived, done, cost time.Duration }

func (s *source) start(load Load, now time.Duration) {
	s.threads, s.base, s.stream = load.Threads, now, nil
	s.serving, s.waiting = nil, nil
	s.next = Job{At: never}
	if load.Jobs != nil && load.Threads > 0 {
		s.stream = load.Jobs(s.rng)
		s.fetch()
	}
}

func (s *source) fetch() {
	job, ok := s.stream()
	if !ok {
		s.next = Job{At: never}
		return
	}
	job.At += s.base
	s.next = job
}

// due adds the jobs that have arrived by now, drops those that have left, and fills the free threads.
func (s *source) due(now time.Duration) {
	for s.next.At <= now {
		j := served{arrived: s.next.At, cost: s.next.Cost, left: s.next.Cost, until: never, lane: s.next.Lane}
		if s.next.For > 0 {
			j.until = s.next.At + s.next.For
		}
		s.waiting = append(s.waiting, j)
		s.fetch()
	}
	kept := s.serving[:0]
	for _, j := range s.serving {
		if j.until > now {
			kept = append(kept, j)
		}
	}
	s.serving = kept
	for i := 0; len(s.serving) < s.threads && i < len(s.waiting); {
		j := s.waiting[i]
		if s.busy(j.lane) {
			i++
			continue
		}
		if j.until > now {
			s.serving = append(s.serving, j)
		}
		if i == 0 {
			s.waiting = s.waiting[1:]
		} else {
			s.waiting = slices.Delete(s.waiting, i, i+1)
		}
	}
}

// busy says whether a job of a lane is served.
func (s *source) busy(lane int) bool {
	return lane != 0 && slices.ContainsFunc(s.serving, func(j served) bool { return j.lane == lane })
}

// work gives each serving thread so much CPU time, notes the jobs that are done, and returns what was used.
func (s *source) work(each, now time.Duration) time.Duration {
	var used time.Duration
	kept := s.serving[:0]
	for _, j := range s.serving {
		if j.left == Forever {
			used += each
			kept = append(kept, j)
			continue
		}
		got := min(each, j.left)
		used, j.left = used+got, j.left-got
		if j.left > 0 {
			kept = append(kept, j)
			continue
		}
		s.responses = append(s.responses, completed{j.arrived, now, j.cost})
	}
	s.serving = kept
	return used
}
