// Package policy decides the quota and burst of each group. It does no I/O and reads no clock: the observations of a
// turn go in, and intents come out as data.
//
// Problem: a container is throttled whenever it uses up the quota of one period, even when its average use is far below
// its limit. How much it may use beyond its limit depends on its strategy, on its recent demand, on its neighbours and
// on the node.
//
// Approach: the same steps for all groups that were read. observe records the usage since the last turn and the values
// of the files; demand sizes the quota that each group needs (burst first, a raise for what burst did not cover);
// guard cuts the demands to what the node can spare, and takes raises back; keepBounds cuts them to what an
// administrator allows; makeIntents turns the remaining demands into intents, each charged with the runtime that its
// write grants. The quota of a pod follows its containers.
//
// Terminology: limit is the declared quota, a raise is a quota above it, the cap is the most that may be used in
// one period, a grant is what a raise or a write allows beyond the limit.
//
// Known limits: what a group would have used while it was throttled is not known; the throttled time of its CPUs bounds
// it. Polling every 100 ms sees a throttle only after its period has ended.
package policy

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/receipt"
	"plimsoll/internal/sample"
	"plimsoll/internal/slab"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

const (
	// demandSpan is how far back demand is considered: a raise is given back when no demand in it exceeded the limit.
	demandSpan = 3 * time.Second
	// marginDivisor adds a tenth to the demand: the kernel hands out runtime in slices, and the part of a slice that an
	// idle CPU holds is lost to the other CPUs.
	marginDivisor = 10
	// keepDivisor: a raise is lowered in part only when at least a quarter of it is not needed.
	keepDivisor = 4
	// raiseDivisor: a raise by less than a twentieth is not worth a write.
	raiseDivisor = 20
	// patience is how long a lowering waits for a moment in which it grants nothing beyond the cap.
	patience = 2 * time.Second
)

// Decide decides for all groups of a full turn. Between two pods it yields (Input.Yield). AnswerThrottles may be called
// then, and is the later one: what Decide says of a group that was answered meanwhile is not to be done. Its Views are
// valid until the next Decide.
func (s *State) Decide(in Input) Output {
	in = s.trusted(in)
	out := newOutput()
	groups := len(in.Pods)
	for _, p := range in.Pods {
		groups += len(p.Containers)
	}
	out.Views = slab.Room(s.views, groups)
	s.turn.Reset(groups)
	pods := s.observe(in)
	s.pool = poolOf(pods)
	in.Node = s.pool.off(in.Node)
	out.Node = in.Node
	raisable := demand(in, pods)
	s.guard(in, raisable, out)
	s.keepBounds(in, pods)
	makeIntents(in, pods, out)
	s.views = out.Views
	return *out
}

func newOutput() *Output {
	return &Output{Kinds: map[Kind]int64{}, Looks: map[workload.ID]time.Time{}}
}

// observe records the readings and makes the candidates.
func (s *State) observe(in Input) []podCandidates {
	for _, id := range in.Gone {
		delete(s.groups, id)
		delete(s.unclaimed, id)
		s.extra.Drop(id)
	}
	pods := make([]podCandidates, 0, len(in.Pods))
	for _, p := range in.Pods {
		in.yield()
		owner := p.owner()
		p.Strategy = p.strategy()
		pu := podCandidates{pod: s.candidate(in, &p.Group, owner, p.Ceiling), own: p.Own}
		ceiling := math.Min(p.Ceiling, podCeiling(pu.pod))
		pu.containers = make([]*candidate, 0, len(p.Containers))
		for _, c := range p.Containers {
			scope := s.candidate(in, c.Scope, owner, ceiling)
			u := s.candidate(in, &c, owner, math.Min(ceiling, podCeiling(scope)))
			pu.containers = append(pu.containers, u)
			if scope != nil {
				pu.scopes = append(pu.scopes, podCandidates{pod: scope, containers: []*candidate{u}})
				pu.scopes[len(pu.scopes)-1].assess()
			}
		}
		pu.assess()
		pods = append(pods, pu)
	}
	s.enrol(in, pods)
	s.boundCeilings(in, pods)
	return pods
}

// podCeiling is the CPUs that a pod's quota allows its containers where the quota cannot be written.
func podCeiling(pod *candidate) float64 {
	if pod == nil || !pod.limit.Limited() || pod.QuotaBlocked == plan.Free || pod.QuotaBlocked == plan.NoTask {
		return math.Inf(1)
	}
	return pod.Disk.CPUs()
}

// candidate makes the candidate of a group; nil: a pod without a group, or a container without a scope.
func (s *State) candidate(in Input, g *Group, owner tenant.Owner, ceiling float64) *candidate {
	if g == nil || g.Path == "" {
		return nil
	}
	m := s.groups[g.ID]
	if m == nil {
		m = &memory{last: g.Reading, lastWrite: in.Now.Add(-time.Hour)}
		s.groups[g.ID] = m
	}
	m.owner, m.inFile = owner, g.Disk
	m.phase.Of(g.Disk.Period)
	if g.CPUs > 0 {
		ceiling = min(ceiling, float64(g.CPUs))
	}
	u := s.turn.New()
	*u = candidate{Group: *g, configured: g.Strategy, m: m, ceiling: ceiling, now: in.Now}
	u.Strategy, u.cpus = cut(g.Strategy, in.BurstCut, in.Rules), max(1, in.Node.CPUs)
	u.starts(g.Starting && u.refilled(in))
	if g.Resized {
		m.history.Reset()
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

// book adds the usage since the last reading to the group's memory.
func (u *candidate) book(in Input) {
	if !u.Looked {
		return
	}
	if u.m.last.At.IsZero() { // it could not be read before
		u.m.last = u.Reading
	}
	if u.Quiet.After(u.m.last.At) && u.Quiet.Before(u.Reading.At) {
		u.bookUntil(sample.Reading{At: u.Quiet, Counters: u.m.last.Counters})
		u.bookSpell(in, 0, receipt.Meter{})
	}
	if u.bookUntil(u.Reading) {
		u.bookSpell(in, u.lost(u.window), u.meter(in))
	}
	switch {
	case !u.throttled:
	case !in.Subscribed || in.Missed || u.m.eventsSuppressed:
		u.m.throttledPeriods.found(u.window.Throttled, u.Reading.At, u.period())
	case throttledThroughout(u.window):
		// CPUs may run beyond their slices, up to a tick each; where one quota does not pay that debt, the group stays
		// throttled for several periods, but the kernel reports the throttle once.
		if _, known := u.m.phase.Known(); known {
			u.m.throttledPeriods.hit(u.m.phase.Next(u.Reading.At).Add(-u.period()), u.period())
		}
	}
}

func (u *candidate) bookUntil(r sample.Reading) (booked bool) {
	if r.At.Before(u.m.last.At) {
		return false // an answer has booked a younger one meanwhile
	}
	u.window = sample.Between(u.m.last, r)
	u.m.last = r
	if u.window.Elapsed() <= 0 {
		return false
	}
	u.throttled = u.window.Throttled > 0
	u.m.history.Add(u.window, demandSpan)
	if u.active() && !u.window.From.Equal(u.Quiet) { // an expiry before it may be counted after it
		u.m.phase.Observe(u.window, u.period())
	}
	u.m.ran = u.window.Used > 0 && u.window.Elapsed() <= u.period() || throttledThroughout(u.window)
	u.m.observeSaved(u.window, u.Disk)
	u.save()
	u.m.budget.advance(u.window, u.limit, u.configured)
	if u.throttled {
		u.m.throttledAt, u.m.everThrottled = r.At, true
	}
	return true
}

// save accounts for the CPU time left unused, up to the requested burst.
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

// active says whether the period timer was active throughout the window. The kernel stops the timer only after a whole
// period without use. So it was active at the window's begin when the group ran in the window before, within a period;
// and it stays active through a window of at most one period, or through one in which each period ended throttled.
func (u *candidate) active() bool {
	return u.m.ran && (u.window.Elapsed() <= u.period() || throttledThroughout(u.window))
}

// demand sizes the quota that each raisable candidate needs, and lists those candidates.
func demand(in Input, pods []podCandidates) []*candidate {
	var all []*candidate
	for i := range pods {
		in.yield()
		pods[i].each(func(p *podCandidates, u *candidate) {
			if p.raises(u) {
				u.decideQuota(in)
				all = append(all, u)
			}
		})
	}
	return all
}

// decideQuota decides the quota that one candidate would get if it were alone on the node.
func (u *candidate) decideQuota(in Input) {
	switch now := in.Now; {
	case u.QuotaBlocked.LeftAlone():
		u.decision = decision{u.Disk.Quota, "", "quota left alone: " + string(u.QuotaBlocked)}
	case !u.limit.Limited():
		u.decision = decision{u.Disk.Quota, "", "no limit"}
	case u.Paused != "":
		u.decision = decision{u.limit.Quota, KindRestore, u.Paused}
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
	case u.m.withdrawn() != "":
		u.withheld(u.m.withdrawn())
	case u.m.inSpell() && u.m.experiment.Withheld():
		u.withheld(WhyWithheld)
	case u.m.experiment != nil && u.raised() && !u.m.experiment.Running(in.Now):
		u.withheld("the spell is over that it was raised for")
	case !u.m.everThrottled && !u.raised():
		u.decision = decision{u.limit.Quota, "", "not throttled"}
	case u.Starting:
		why := "starting: throttles are ended one by one, and the quota stays"
		u.decision = decision{u.limit.Quota, KindGiveBack, why}
	case u.Looked:
		u.decision = u.demand(in)
	}
	if u.QuotaBlocked == plan.NoRaise && u.quota > u.limit.Quota {
		u.deny(string(plan.NoRaise))
	}
	if u.quota > u.Disk.Quota && u.withhold(in) {
		u.withheld(WhyWithheld)
	}
}

// demand sizes a raise from the candidate's recent demand.
//
// A throttle proves that the limit and its burst did not suffice. After it, the raise stays for demandSpan, and then
// until the limit would have covered the demand of that span. So a raise outlasts the gaps between bursts and ends soon
// after the last one. Where throttles are ended one by one (refill.go), only lasting demand causes the first raise.
func (u *candidate) demand(in Input) decision {
	now, period, limit := in.Now, u.period(), u.limit.Quota
	recent := u.m.lately(now)
	plain := cpu.Bandwidth{Quota: limit, Period: period, Burst: u.Disk.Burst}
	if !recent && bandwidth.Covers(u.m.history.Demands(period, demandSpan), plain) {
		u.m.everThrottled = false
		return decision{limit, KindGiveBack, "the limit covers the demand of the last 3 s"}
	}
	if u.refilled(in) && !u.raised() && !u.m.throttledPeriods.lasting(now, period) {
		return decision{limit, "", u.m.why}
	}
	peak := u.m.history.Peak(period, demandSpan)
	need := peak + peak/marginDivisor
	if u.throttled {
		need = max(need, u.Disk.Quota+u.Disk.Quota/marginDivisor)
	}
	if u.refilled(in) { // a quota between half of the cap and the cap leaves no room for a refill
		need = u.most()
	}
	need = min(max(need, limit), u.most())
	if left := u.m.budget.left(); left != cpu.Unlimited {
		need = min(need, limit+left)
	}
	need = need.Truncate(time.Microsecond)
	if u.Disk.Quota <= u.most() && !worth(u.Disk.Quota, need) {
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
	why := fmt.Sprintf("%s: demand up to %v a period, limit %v", rule, peak.Round(time.Millisecond), limit)
	return decision{need, kind, why}
}

// lately says whether the group was throttled in the last demandSpan.
func (m *memory) lately(now time.Time) bool {
	return m.everThrottled && now.Sub(m.throttledAt) < demandSpan
}

// most is the largest quota: a burst that may not be written is left, and is used beside it.
func (u *candidate) most() time.Duration {
	if u.BurstBlocked == plan.Free {
		return u.cap()
	}
	return max(u.limit.Quota, u.cap()-u.Disk.Burst)
}

// worth says whether a new quota differs enough from the old one for a write.
func worth(old, quota time.Duration) bool {
	if quota > old {
		return quota-old >= old/raiseDivisor
	}
	return old-quota >= old/keepDivisor
}
