// Package policy decides what each group's bandwidth shall be. It does no I/O and knows no clock: a turn's
// observations go in, changes as data come out.
//
// Problem: a container is throttled whenever it uses one period's quota up, even when it is far below its limit on
// average. What it may have beyond its limit depends on its strategy, on what it has wanted of late, on its
// neighbours and on the node.
//
// Approach: one straight line for all groups that were looked at. observe books what happened and whose values
// are in the files; demand says what each group needs (burst first, quota for what burst did not cover); guard cuts
// the demands to what the node can spare, and takes raises back; makeIntents turns what is left into intents, each
// charged with the runtime that its write grants, and lets pods follow their containers.
//
// Terminology: limit is the declared quota, a raise is a quota above it, the cap is the most that may be used in
// one period, a grant is what a raise or a write allows beyond the limit.
//
// Known limits: what a group would have used while it was throttled is bounded by the time that its CPUs stood
// still, not known. Looking every 100 ms sees a throttle after its period's end.
package policy

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/workload"
)

// WhyAtLimit is the reason of a group that is not to be raised for now. Who paused it knows why.
const WhyAtLimit = "held at the limit"

const (
	// demandSpan is the last while: a raise is given back when nothing in it needed more than the limit.
	demandSpan = 3 * time.Second
	// marginDivisor adds a tenth to what was wanted: the kernel hands out runtime in slices, and what CPUs hold
	// of theirs when they go idle is lost to the others.
	marginDivisor = 10
	// keepDivisor: a raise is lowered in part only when at least a quarter of it is not needed.
	keepDivisor = 4
	// raiseDivisor: a raise by less than a twentieth is not worth a write.
	raiseDivisor = 20
	// patience is how long a lowering waits for a moment in which it grants nothing beyond the cap.
	patience = 2 * time.Second
)

// Decide takes a turn.
func (s *State) Decide(in Input) Output {
	in = s.trusted(in)
	out := newOutput()
	pods := s.observe(in, out)
	s.rest = restOf(pods)
	in.Node = s.rest.off(in.Node)
	out.Node = in.Node
	raisable := demand(in, pods)
	s.guard(in, raisable, out)
	makeIntents(in, pods, out)
	return *out
}

func newOutput() *Output {
	return &Output{Kinds: map[Kind]int64{}, Looks: map[workload.ID]time.Time{}}
}

// observe books the readings and finds out whose values are in the files.
func (s *State) observe(in Input, out *Output) []podCandidates {
	for _, id := range in.Gone {
		delete(s.groups, id)
	}
	pods := make([]podCandidates, 0, len(in.Pods))
	for _, p := range in.Pods {
		pu := podCandidates{pod: s.candidate(in, p.Group, p.Ceiling, out), own: p.Own}
		ceiling := math.Min(p.Ceiling, podCeiling(in, pu.pod))
		pu.containers = make([]*candidate, 0, len(p.Containers))
		for _, c := range p.Containers {
			scope := s.scope(in, p.Scopes, c.ID, ceiling, out)
			u := s.candidate(in, c, math.Min(ceiling, podCeiling(in, scope)), out)
			pu.containers = append(pu.containers, u)
			if scope != nil {
				pu.scopes = append(pu.scopes, podCandidates{pod: scope, containers: []*candidate{u}})
				pu.scopes[len(pu.scopes)-1].assess()
			}
		}
		pu.assess()
		pods = append(pods, pu)
	}
	return pods
}

// scope makes the candidate of a container's scope, nil where it has none.
func (s *State) scope(in Input, scopes []Scope, container workload.ID, ceiling float64, out *Output) *candidate {
	for _, g := range scopes {
		if g.Of == container {
			return s.candidate(in, g.Group, ceiling, out)
		}
	}
	return nil
}

// podCeiling is what a pod's own quota allows its containers where it cannot follow them.
func podCeiling(in Input, pod *candidate) float64 {
	if pod == nil || !pod.limit.Limited() || pod.QuotaBlocked == plan.Free || pod.QuotaBlocked == plan.NoTask {
		return math.Inf(1)
	}
	return pod.Disk.CPUs()
}

// candidate makes the candidate of a group, nil for the pod that is none.
func (s *State) candidate(in Input, g Group, ceiling float64, out *Output) *candidate {
	if g.Path == "" {
		return nil
	}
	m := s.groups[g.ID]
	if m == nil {
		m = &memory{last: g.Reading, lastWrite: in.Now.Add(-time.Hour)}
		s.groups[g.ID] = m
	}
	m.holds = g.Disk
	configured := g.Strategy
	g.Strategy = cut(g.Strategy, in.BurstCut, in.Rules)
	u := &candidate{Group: g, configured: configured, m: m, ceiling: g.bound(ceiling), now: in.Now, cpus: max(1, in.Node.CPUs)}
	u.starts(g.Starting && u.refilled(in))
	if g.Resized {
		m.history.Reset()
		m.budget = budget{}
	}
	u.limit = cpu.Bandwidth{Quota: g.Limit.Quota, Period: g.Disk.Period, Burst: g.Limit.Burst}
	u.decision = decision{quota: g.Disk.Quota, why: m.why}
	u.book(in)
	if t, ok := Latest(in.Throttles, g.Inode); ok {
		u.bookThrottle(t)
		u.m.history.Rush(t.At, t.Bandwidth, t.Expires)
	}
	return u
}

// book adds what happened since the last look to what is remembered.
func (u *candidate) book(in Input) {
	if !u.Looked {
		return
	}
	if u.Quiet.After(u.m.last.At) && u.Quiet.Before(u.Reading.At) {
		u.bookUntil(sample.Reading{At: u.Quiet, Counters: u.m.last.Counters})
	}
	u.bookUntil(u.Reading)
	switch {
	case !u.stood:
	case !in.Subscribed || in.Missed || u.m.eventsSuppressed:
		u.m.throttledPeriods.hit(u.Reading.At, u.period())
		u.m.throttledPeriods.count += max(0, u.window.Throttled-1)
	default:
		u.owes()
	}
}

// owes books a period that a throttle stood through. CPUs may run beyond their slices, up to a tick each, and where the quota
// does not pay for that the group stands still for several periods; but the kernel tells of the throttle once.
func (u *candidate) owes() {
	if _, known := u.m.phase.Known(); known && throttledThroughout(u.window) {
		u.m.throttledPeriods.hit(u.m.phase.Next(u.Reading.At).Add(-u.period()), u.period())
	}
}

func (u *candidate) bookUntil(r sample.Reading) {
	u.window = sample.Between(u.m.last, r)
	u.m.last = r
	if u.window.Elapsed() <= 0 {
		return
	}
	u.stood = u.window.Throttled > 0
	u.m.history.Add(u.window, demandSpan)
	if u.active() && !u.window.From.Equal(u.Quiet) { // an expiry before it may be counted after it
		u.m.phase.Observe(u.window, u.period())
	}
	u.m.ran = u.window.Used > 0 && u.window.Elapsed() <= u.period() || throttledThroughout(u.window)
	u.m.observeSaved(u.window, u.Disk)
	u.save()
	u.m.budget.advance(u.window, u.limit, u.configured)
	if u.stood {
		u.m.throttledAt, u.m.everStood = r.At, true
	}
}

// save keeps account of the time left unused, up to the burst that was asked for.
func (u *candidate) save() {
	if !u.limit.Limited() {
		u.m.savings = 0
		return
	}
	earned := time.Duration(u.limit.CPUs() * float64(u.window.Elapsed()))
	most := cpu.Percent(u.limit.Quota, u.Strategy.CPUBurstPercent)
	u.m.savings = min(most, max(0, u.m.savings+earned-u.window.Used))
}

// throttledThroughout says whether every period that ended in the window ended throttled.
func throttledThroughout(w sample.Usage) bool { return w.Periods > 0 && w.Throttled == w.Periods }

// active says whether the period timer cannot have missed an expiry in the window. It rests only after a whole period
// without use. So it ran at the window's begin when the group ran in the window before, within a period; and it goes
// on through a window of a period at most, or through one in which each period ended throttled.
func (u *candidate) active() bool {
	return u.m.ran && (u.window.Elapsed() <= u.period() || throttledThroughout(u.window))
}

// demand says what each raisable candidate needs, and lists those candidates.
func demand(in Input, pods []podCandidates) []*candidate {
	var all []*candidate
	for _, p := range pods {
		list := p.raisable()
		for _, scope := range p.scopes {
			if scope.raises(scope.pod) {
				list = append(list, scope.pod)
			}
		}
		for _, u := range list {
			u.decideQuota(in)
			all = append(all, u)
		}
	}
	return all
}

// decideQuota decides the quota that one candidate needs, were it alone on the node.
func (u *candidate) decideQuota(in Input) {
	switch now := in.Now; {
	case u.QuotaBlocked.LeftAlone():
		u.decision = decision{u.Disk.Quota, "", "quota left alone: " + string(u.QuotaBlocked)}
	case !u.limit.Limited():
		u.decision = decision{u.Disk.Quota, "", "no limit"}
	case u.Paused:
		u.decision = decision{u.limit.Quota, KindRestore, WhyAtLimit}
	case !u.Strategy.Policy.Quota():
		u.decision = decision{u.limit.Quota, KindRestore, fmt.Sprintf("policy %s raises no quota", u.Strategy.Policy)}
	case u.QuotaBlocked == plan.Waiting, u.QuotaBlocked == plan.Pending:
		u.decision = decision{u.Disk.Quota, "", string(u.QuotaBlocked)}
	case !u.m.wait.Ready(now):
		u.decision = decision{u.limit.Quota, KindGuard, "taken back because of the node's load, waiting"}
	case u.m.budget.left() == 0:
		u.decision = decision{u.limit.Quota, KindBudget, fmt.Sprintf("budget of %d s above the limit is used up",
			u.Strategy.CFSQuotaBurstPeriodSeconds)}
	case !u.Ready:
		u.decision = decision{u.limit.Quota, "", "nothing is written before a task is in it"}
	case !u.m.everStood && !u.raised():
		u.decision = decision{u.limit.Quota, "", "not throttled"}
	case u.Starting:
		u.decision = decision{u.limit.Quota, KindGiveBack, "starting: throttles are ended one by one, and the quota stays"}
	case u.Looked:
		u.decision = u.demand(in)
	}
}

// demand sizes a raise from what the candidate has wanted of late.
//
// A throttle proves that the limit (and its burst) did not do; after it, the raise stays for demandSpan, and then
// until the demand of that span would have fitted. So a raise outlives the gaps between bursts, and ends soon after
// the last one. Where throttles are ended one by one (refill.go), the first raise waits for a demand that lasts.
func (u *candidate) demand(in Input) decision {
	now, period, limit := in.Now, u.period(), u.limit.Quota
	recent := u.m.everStood && now.Sub(u.m.throttledAt) < demandSpan
	plain := cpu.Bandwidth{Quota: limit, Period: period, Burst: u.Disk.Burst}
	if !recent && bandwidth.Covers(u.m.history.Demands(period, demandSpan), plain) {
		u.m.everStood = false
		return decision{limit, KindGiveBack, "the limit covers the demand of the last 3 s"}
	}
	if u.refilled(in) && !u.raised() && !u.m.throttledPeriods.lasting(now, period) {
		return decision{limit, "", u.m.why}
	}
	peak := u.m.history.Peak(period, demandSpan)
	need := peak + peak/marginDivisor
	if u.stood {
		need = max(need, u.Disk.Quota+u.Disk.Quota/marginDivisor)
	}
	if u.refilled(in) {
		need = u.toTheCap()
	}
	need = min(max(need, limit), u.cap())
	if left := u.m.budget.left(); left != cpu.Unlimited {
		need = min(need, limit+left)
	}
	need = need.Truncate(time.Microsecond)
	if !worth(u.Disk.Quota, need) {
		return decision{u.Disk.Quota, "", u.m.why}
	}
	kind := KindRaise
	if need < u.Disk.Quota {
		kind = KindGiveBack
	}
	rule := "throttled within the last 3 s"
	if !recent {
		rule = "the limit would not cover the last 3 s"
	}
	return decision{need, kind, fmt.Sprintf("%s: demand up to %v a period, limit %v", rule, peak.Round(time.Millisecond), limit)}
}

// toTheCap is the quota of a demand that lasts where throttles are ended one by one: all or nothing, for a quota
// between half of the cap and the cap leaves no room for a refill. What a little more of it would take is not worth it.
func (u *candidate) toTheCap() time.Duration {
	most := u.cap()
	if u.raised() && most-u.Disk.Quota < most/8 {
		return u.Disk.Quota
	}
	return most
}

// worth says whether a new quota differs enough from the old one for a write.
func worth(old, quota time.Duration) bool {
	if quota > old {
		return quota-old >= old/raiseDivisor
	}
	return old-quota >= old/keepDivisor
}
