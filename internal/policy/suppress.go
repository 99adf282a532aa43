package policy

import (
	"math"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Suppression of offline work.
//
// Problem: priority keeps offline work behind online work, but not off the node: it still takes cache, memory bandwidth
// and the sibling threads, and whoever wants the node's use to stay below a mark has no knob for it.
//
// Approach: what offline groups may use in all is the mark less what everybody else uses. When the node's use passes the
// mark they get quotas that sum up to that: at once where less is left than they have, and at most a tenth of the node
// more each second where more is left (the steps of Koordinator's koordlet, cpusuppress), never below a floor. They share
// it evenly, as far as they want it and their own limits let them: nobody's quota is ever above what its owner gave it.
// When they have not wanted what they have for a while, the quotas go.
// What their owners let them save up goes with their first quota and comes back with the last: the kernel refuses a quota
// below the burst, and a burst would pass the mark. They may be bound to CPUs instead (confine).
//
// Terminology: mark is cpuSuppressThresholdPercent of the CPUs, room what offline work may use.
//
// Known limits: a second passes before more use is seen. On v1 a quota below that of a group inside is refused by the
// kernel, and said.

const (
	roomStep   = 0.1 // of the node's CPUs, more in a second
	roomNoise  = 0.01
	wantedPart = 0.8 // of its room; offline work that uses less wants no more
	unwanted   = 10 * time.Second
	usedUp     = 0.9 // of what a group had: it wants more
	growth     = 1.25
	notWorth   = 0.05
	leastQuota = time.Millisecond // kernel/sched/core.c, min_cfs_quota_period
	aboveMark  = "the node's use is above cpuSuppressThresholdPercent"
)

// Suppressed is an offline group whose use is bounded.
type Suppressed struct {
	workload.ID
	Used  float64       // CPUs, in the last second
	Limit cpu.Bandwidth // its owner's
}

// Load is what was measured of the node since the last second.
type Load struct {
	CPUs    float64 // online
	Used    float64 // by all
	Offline []Suppressed
	// Topology and Confined are known where offline work is to be bound to CPUs, and can be.
	Topology cpu.Topology
	Confined []Confined
}

// Suppression is what is remembered from second to second.
type Suppression struct {
	on     bool
	room   float64
	modest time.Time // since when offline work has used less than its room
	given  map[workload.ID]float64
}

// Room is how many CPUs offline work may use, and whether that is bounded.
func (s *Suppression) Room() (cpus float64, bounded bool) { return s.room, s.on }

// Decide says what the quotas of offline groups are to be; nothing where they are not bounded.
func (s *Suppression) Decide(now time.Time, ask strategy.Suppress, l Load) []plan.Intent {
	if !ask.Enable || l.CPUs <= 0 {
		*s = Suppression{}
		return nil
	}
	if s.advance(now, ask, l); !s.on || len(l.Offline) == 0 {
		return nil
	}
	if ask.Policy == strategy.SuppressCPUSet && len(l.Confined) > 0 {
		if list := confine(s.room, l.Topology, l.Confined); len(list) > 0 {
			s.given = nil
			return list
		}
	}
	return s.quotas(l)
}

// advance moves the room by a second.
func (s *Suppression) advance(now time.Time, ask strategy.Suppress, l Load) {
	mark := l.CPUs * float64(ask.ThresholdPercent) / 100
	floor := l.CPUs * float64(ask.MinPercent) / 100
	used := offlineUse(l)
	left := math.Max(floor, mark-math.Max(0, l.Used-used))
	switch {
	case !s.on && l.Used > mark:
		s.on, s.room, s.modest = true, math.Min(left, l.CPUs), now
	case !s.on:
		return
	case left < s.room-roomNoise*l.CPUs:
		s.room = left
	case left > s.room+roomNoise*l.CPUs:
		s.room = math.Min(left, s.room+roomStep*l.CPUs)
	}
	if used >= wantedPart*s.room {
		s.modest = now
	}
	if now.Sub(s.modest) >= unwanted {
		*s = Suppression{}
	}
}

func offlineUse(l Load) float64 {
	sum := 0.0
	for _, g := range l.Offline {
		sum += g.Used
	}
	return sum
}

// quotas shares the room evenly among those that want it (split). Who used up what it had wants more than can be seen;
// what nobody wants is spread over all, so that each can grow.
func (s *Suppression) quotas(l Load) []plan.Intent {
	claims := make([]claim, len(l.Offline))
	for i, g := range l.Offline {
		claims[i] = claim{weight: 1, want: g.Used * growth}
		if had, ok := s.given[g.ID]; !ok || g.Used >= usedUp*had {
			claims[i].want = l.CPUs
		}
		claims[i].want = min(claims[i].want, g.Limit.CPUs())
	}
	got := split(claims, s.room)
	spare := s.room
	for _, cpus := range got {
		spare -= cpus
	}
	had := s.given
	s.given = map[workload.ID]float64{}
	var list []plan.Intent
	for i, g := range l.Offline {
		cpus := got[i] + max(0, spare)/float64(len(got))
		if before := had[g.ID]; math.Abs(cpus-before) < notWorth*before {
			cpus = before // each write of a quota refills it
		}
		s.given[g.ID] = cpus
		if cpus >= g.Limit.CPUs() {
			continue // its owner's limit does it
		}
		quota := max(leastQuota, time.Duration(cpus*float64(g.Limit.Period)).Truncate(time.Millisecond))
		in := intent(g.ID, plan.Quota, plan.Time(quota), aboveMark)
		in.Min, in.Max = plan.Time(leastQuota), plan.Time(cpu.Unlimited)
		list = append(list, in)
		if g.Limit.Burst > 0 {
			list = append(list, intent(g.ID, plan.Burst, plan.Time(0), aboveMark))
		}
	}
	return list
}
