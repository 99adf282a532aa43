package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
)

// cpuSlice is sched_cfs_bandwidth_slice_us.
const cpuSlice = 5 * ms

// spinner is a group that spins on some CPUs from a period's begin on. Other than in package sim, a CPU takes its
// runtime in slices, and accounts for its use at its ticks.
type spinner struct {
	limit      cpu.Bandwidth
	pool, used time.Duration
	rest, last []time.Duration // of each CPU: its runtime, and when it has accounted for its use
}

// takes fills a CPU's slice from the pool, and says whether the CPU goes on (kernel/sched/fair.c,
// __assign_cfs_rq_runtime).
func (s *spinner) takes(i int) bool {
	if s.rest[i] <= 0 {
		some := min(s.pool, cpuSlice-s.rest[i])
		s.pool, s.rest[i] = s.pool-some, s.rest[i]+some
	}
	return s.rest[i] > 0
}

// refill is tg_set_cfs_bandwidth.
func (s *spinner) refill() {
	s.pool = min(s.pool+s.limit.Quota, s.limit.Quota+s.limit.Burst)
	clear(s.rest)
}

// event is what the kernel's programs report (probe/bpf/balance.h).
func (s *spinner) event(at time.Duration) bandwidth.Throttle {
	left := s.pool
	for _, rest := range s.rest {
		left += max(0, rest)
	}
	return bandwidth.Throttle{At: t0.Add(at), Bandwidth: s.limit, Expires: t0.Add(s.limit.Period), UseKnown: true,
		Used: s.used, Left: left}
}

// foreseen says whether CPU i, at its tick, sees that one CPU will be throttled at the next two ticks, about as
// probe/bpf/outlook.h does.
func (s *spinner) foreseen(i int, at, tick time.Duration) bool {
	step, n := max(tick, 2*ms), time.Duration(len(s.rest))
	if s.rest[i]-(at-s.last[i])+s.pool/n > tick+2*ms+cpuSlice {
		return false
	}
	draws := time.Duration(0)
	for j, rest := range s.rest {
		for rest -= min(at-s.last[j], step) + step; rest <= 0; rest += cpuSlice {
			draws += cpuSlice
		}
	}
	return draws-s.pool >= cpuSlice
}

// judged is the verdict on the last of so many refills ahead of a throttle, by the throttle that begins in the same
// period all the same; Undecided: none begins.
func judged(rng *rand.Rand, limit cpu.Bandwidth, cpus, refills int, tick time.Duration, inStep, ignores bool) Effect {
	s := spinner{limit: limit, pool: limit.Quota, rest: make([]time.Duration, cpus), last: make([]time.Duration, cpus)}
	next := make([]time.Duration, cpus)
	for i := range next {
		next[i] = tick
		if !inStep {
			next[i] = 1 + time.Duration(rng.Int64N(int64(tick)))
		}
		s.takes(i)
	}
	var last *Refill
	due, seen, of := limit.Period, false, bandwidth.Throttle{}
	for {
		i, at := 0, slices.Min(next)
		i = slices.Index(next, at)
		if at >= limit.Period {
			return Undecided
		}
		if due <= at {
			if !ignores {
				s.refill()
			}
			last = &Refill{At: t0.Add(due), For: of, CPUs: cpus}
			due, refills, seen = limit.Period, refills-1, ignores
		}
		if refills > 0 && !seen && s.foreseen(i, at, tick) {
			due, seen, of = at+300*time.Microsecond, true, s.event(at)
			of.Ahead = true
		}
		ran := at - s.last[i]
		s.rest[i], s.used, s.last[i], next[i] = s.rest[i]-ran, s.used+ran, at, at+tick
		if !s.takes(i) {
			if last == nil {
				return Undecided // it was not foreseen in time
			}
			return last.Throttled(s.event(at))
		}
	}
}

// TestRefillsOfManyCPUs: a refill that the kernel makes is never called ineffective, however many CPUs hold slices, and
// one that it ignores is never called effective, and mostly ineffective.
func TestRefillsOfManyCPUs(t *testing.T) {
	for _, c := range []struct {
		tick  time.Duration
		cpus  int
		quota time.Duration
	}{
		{4 * ms, 2, 24 * ms}, {4 * ms, 4, 50 * ms}, {4 * ms, 8, 100 * ms}, {4 * ms, 24, 400 * ms}, {ms, 3, 20 * ms},
		{ms, 8, 50 * ms}, {10 * ms, 4, 100 * ms},
	} {
		limit := cpu.Bandwidth{Quota: c.quota, Period: 100 * ms}
		for _, inStep := range []bool{false, true} {
			name := fmt.Sprintf("tick %v, %d CPUs, %v, in step: %v", c.tick, c.cpus, c.quota, inStep)
			made, ignored := map[Effect]int{}, map[Effect]int{}
			for seed := range uint64(200) {
				rng := rand.New(rand.NewPCG(seed, 1))
				refills := 1 + int(seed%2)
				made[judged(rng, limit, c.cpus, refills, c.tick, inStep, false)]++
				ignored[judged(rng, limit, c.cpus, refills, c.tick, inStep, true)]++
			}
			t.Logf("%s: made %v, ignored %v", name, made, ignored)
			if made[Ineffective] > 0 || made[Effective]+made[Unneeded] == 0 {
				t.Errorf("%s: refills that were made: %v", name, made)
			}
			if ignored[Effective] > 0 || ignored[Ineffective] < 150 {
				t.Errorf("%s: refills that were ignored: %v", name, ignored)
			}
		}
	}
}
