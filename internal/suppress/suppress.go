// Package suppress bounds what offline work uses.
//
// Problem: with a lower priority, offline work runs after online work but is not kept off the node: it still uses
// cache, memory bandwidth and sibling threads, and no kernel knob keeps the node's use below a threshold.
//
// Approach: offline groups together may use the threshold less the use of all other tasks: the room. When the node's
// use passes the threshold they get quotas that sum up to the room. The room shrinks at once and grows by at most a
// tenth of the node each second (the steps of Koordinator's koordlet, cpusuppress), and never falls below a minimum.
// The groups share it evenly, up to their demand and their own limits: no quota exceeds the one of the group's owner.
// When the groups have used little of the room for a while, the quotas are removed. The owner's burst is set to 0 with
// the first quota and restored with the last: the kernel refuses a quota below the burst, and a burst would pass the
// threshold. The groups may be bound to CPUs instead (confine).
//
// The use of a group in the second in which it is made or removed is not known, and would count as that of other tasks:
// the room stays as it is for that second, and a new group gets a part of it. After one such second the next one
// counts, so that groups that come and go all the time do not keep the room from falling.
//
// Terminology: threshold is cpuSuppressThresholdPercent of the CPUs, room the CPUs that offline work may use.
//
// Known limits: a rise of the use is seen a second later, and where groups come and go up to two. On v1 the kernel
// refuses a quota below that of a child group; the refusal is reported. It also refuses a quota of a child group above
// ours: the quotas are written at the topmost offline groups, and a container that is made or resized in one with a
// larger quota fails.
package suppress

import (
	"math"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

const (
	roomStep   = 0.1 // of the node's CPUs, more in a second
	roomNoise  = 0.01
	wantedPart = 0.8 // of its room; offline work that uses less has no demand for more
	unwanted   = 10 * time.Second
	usedUp     = 0.9 // of its quota; a group that uses more has a demand for more
	growth     = 1.25
	notWorth   = 0.05
	leastQuota = time.Millisecond // kernel/sched/core.c, min_cfs_quota_period
	aboveMark  = "the node's use is above cpuSuppressThresholdPercent"
)

// Group is an offline group whose use is bounded.
type Group struct {
	workload.ID
	Used  float64       // CPUs, in the last second; 0 for a new group
	Limit cpu.Bandwidth // its owner's
}

// Load is the measured use of the node in the last second.
type Load struct {
	CPUs    float64 // online
	Used    float64 // by all tasks
	Offline []Group
	Partial bool // offline groups were made or removed: a part of their use is not in Offline
	// Topology and Confined are set where offline work is to be bound to CPUs, and can be.
	Topology cpu.Topology
	Confined []Confined
}

// State is the state from second to second.
type State struct {
	on     bool
	kept   bool // the room was kept in the last second, because the load was partial
	room   float64
	modest time.Time // when offline work last used most of its room
	given  map[workload.ID]float64
}

// Room returns how many CPUs offline work may use, and whether they are bounded.
func (s *State) Room() (cpus float64, bounded bool) { return s.room, s.on }

// Decide makes the intents for offline groups; none where their use is not bounded.
func (s *State) Decide(now time.Time, ask strategy.Suppress, l Load) []plan.Intent {
	if !ask.Enable || l.CPUs <= 0 {
		*s = State{}
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

// advance adapts the room to the load of one second.
func (s *State) advance(now time.Time, ask strategy.Suppress, l Load) {
	if s.kept = l.Partial && !s.kept; s.kept {
		return
	}
	threshold := l.CPUs * float64(ask.ThresholdPercent) / 100
	least := l.CPUs * float64(ask.MinPercent) / 100
	used := offlineUse(l)
	left := math.Max(least, threshold-math.Max(0, l.Used-used))
	switch {
	case !s.on && l.Used > threshold:
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
		*s = State{}
	}
}

func offlineUse(l Load) float64 {
	sum := 0.0
	for _, g := range l.Offline {
		sum += g.Used
	}
	return sum
}

// quotas shares the room evenly among the groups, up to their demands (tenant.Split). The demand of a group that used
// up its quota is not known and counts as unbounded. Room without demand is spread over all groups,
// so that each can grow.
func (s *State) quotas(l Load) []plan.Intent {
	claims := make([]tenant.Claim, len(l.Offline))
	for i, g := range l.Offline {
		claims[i] = tenant.Claim{Weight: 1, Want: g.Used * growth}
		if had, ok := s.given[g.ID]; !ok || g.Used >= usedUp*had {
			claims[i].Want = l.CPUs
		}
		claims[i].Want = min(claims[i].Want, g.Limit.CPUs())
	}
	got := tenant.Split(claims, s.room)
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
			continue // its owner's limit suffices
		}
		quota := max(leastQuota, time.Duration(cpus*float64(g.Limit.Period)).Truncate(time.Millisecond))
		in := intent(g.ID, plan.Quota, plan.Time(quota))
		in.Min, in.Max = plan.Time(leastQuota), plan.Time(cpu.Unlimited)
		list = append(list, in)
		if g.Limit.Burst > 0 {
			list = append(list, intent(g.ID, plan.Burst, plan.Time(0)))
		}
	}
	return list
}

func intent(id workload.ID, knob plan.Knob, value plan.Value) plan.Intent {
	return plan.Intent{Key: plan.Key{ID: id, Knob: knob}, Value: value, Why: aboveMark, Priority: plan.ForColocation}
}
