package policy

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// Rescuing: ending a throttle in the millisecond in which it begins.
//
// Problem: a group that has used its quota up stands still until its period ends. Raising the quota ends that, but
// whoever reads cpu.max meanwhile (GOMAXPROCS, the JVM) takes the raise for the limit, a resize meets a value that is
// not the owner's, and an agent that dies leaves the raise behind.
//
// Approach: writing the burst file once more with the value that it holds refills the group by one quota and
// unthrottles it at once (kernel/sched/core.c, tg_set_cfs_bandwidth), and no value moves. So a throttle that the
// kernel tells of is answered by such a refill, if
//   - the cap allows it: a refill hands out a quota, and is charged as any other write (grant.go), against what the
//     kernel says that the period can use by now: what it has used, and what is left in the pool and on CPUs. A refill
//     takes from all CPUs what they hold, so that this is less than what was handed out, and next to nothing of a refill
//     may remain of which one CPU had taken the slice;
//   - the budget above the limit is not used up;
//   - the node can spare it (share.go), unless the group has saved it up: a strategy that asks for a burst of
//     cpuBurstPercent is owed the time that was left unused, up to that much, of which mainline itself keeps one quota
//     at most (burst <= quota). Like the kernel's own burst it does not wait for the node's leave.
//
// What became of a refill is judged by what the group then runs (effect.go).
//
// A throttle may be reported more than once: as it is foreseen and as it begins, and by several CPUs. What began before the
// last write of quota or burst was begun has been ended by that, and is not answered by another one.
//
// The quota itself is raised only for demand that lasts: throttles in lastingHits of lastingPeriods periods.
//
// A start is the first seconds of a container (startupSeconds), or until its owner says that it is ready. A runtime
// such as the JVM reads its limit then, and sizes its heap, its garbage collector and its pools by it for life; so the
// quota stays what it is however long the demand lasts. It takes seconds of CPU time when nothing was saved up yet: it
// is refilled however often it is throttled, also when writes are scarce (others then go without), as far as the node
// can spare it and up to a cap of its own (startupBurstPercent). The cap of other times bounds what a container takes
// beyond what it was sized for. A start is not what it was sized for: it wants what CPUs there are, once, and is over
// the sooner the more it gets. What it wants says nothing of its limit. The node spares it all below the threshold, and
// others what is below 90 % of it: that gap keeps raises, which stand, from being made and taken back in turns, and
// what a start is handed ends with its period. So it also costs nobody else a raise when the node's use does come up to
// the threshold (share.go). Its throttles are reported from there on too: the use falls as soon as it is refilled no
// more, and then it is its turn again. Where throttles are polled for, a start is as any other time.
//
// What a refill takes of the node: it is used until its period ends, if at all, or until the group is throttled again,
// and shows in the node's use from then on. Until then it counts as that much more of the mean over nodeSpan. That of a
// pod whose containers have limits of their own counts for nothing: they can use no more for it than they are handed.
// To count it for longer would be to count it twice: a start that may use three quotas a period would not get half of
// them on a machine that it has to itself. A quota is a coarse measure of a small machine, and so is rounded: there
// must be room for half of it. The mean use then comes up to the line, and not only to a quota below it.
//
// Terminology: a refill is the rewrite; a throttled period is one in which a throttle began or was foreseen, or that
// one stood through; the limit of a group is too low when it was throttled in more than half of the periods of a
// minute, and it is then refilled only while writes are not scarce.
//
// Ahead of the throttle: where the kernel foresees that the runtime will be used up before the period ends, a refill in
// time leaves nothing to be ended. It hands out no more than one after the throttle would; but where the job ends by
// itself in the last moment it was for nothing. The kernel can look ahead by a tick, and does so for quotas from 20 ms on
// (probe/bpf/ahead.h): of smaller ones most would be foreseen in vain. A refill takes away what is left in the pool,
// unless there is a buffer for it, and on CPUs: of 4 ms on two CPUs that is 8 ms of CPU time, as much less to be had
// below the cap. So a group that has come to its cap of late waits for as long as it can: until a moment before the
// first of the CPUs that it was on would stand still. Others have nothing to win by it.
//
// Known limits: refills are handed out first come, first served, a quota at a time, while raises are shared by weight.
// A start that exits is forgotten at once, and the node's mean holds what it used for a moment longer (nodeSpan).
// Kernels below 5.14 have no burst file, and are raised instead.

const (
	// leastGain is for how long at least the throttle would last: a refill just before the period's own is banked.
	leastGain = 2 * time.Millisecond
	// A demand lasts when lastingHits of lastingPeriods periods were struck.
	lastingHits, lastingPeriods = 3, 5
	// capMemory is how long it counts that a group has come to its cap.
	capMemory = 10 * time.Minute
	// lead is how long before a throttle would begin the refill ahead of it is due that waits. It begins when it was to, to a
	// quarter of a millisecond, but the agent has to wake up and write: on a virtual machine that shares its CPUs one timer
	// in ten is a millisecond late. With 1.5 ms there 14 % of the throttles still began (cfsQuotaBurstOnly in the demo), with 3
	// ms 1 %.
	lead = 3 * time.Millisecond
	// verdictSlack is how long after its minute the next verdict on a limit may come: with the next throttle, which polling
	// may find late.
	verdictSlack = 5 * time.Second
)

// Throttle is what the kernel reported of one group when its runtime ran out.
type Throttle struct {
	Inode     uint64
	At        time.Time
	Bandwidth cpu.Bandwidth // as the kernel has it
	Handed    time.Duration // what was in the pool after its last refill; negative: the kernel does not keep that
	Expires   time.Time     // when the period timer fires next; zero: not known
	Counted   bool          // Used and Left are known
	Used      time.Duration // CPU time since the period began, or some more
	Left      time.Duration // in the pool, and taken from it by CPUs that have not used it
	Ahead     bool          // it has not begun yet: the runtime will be used up soon
	Dry       time.Time     // when the first CPU is to stand still, if those go on that use it now
}

// Due is when one that is put off is to be brought again (Output.Later).
func (t Throttle) Due() time.Time { return t.Dry.Add(-lead) }

// AnswerThrottles takes a turn for groups that were throttled a moment ago. in.Pods are the pods that they are in; of the
// groups those with an event are to be looked at.
func (s *State) AnswerThrottles(in Input, throttles []Throttle, budget WriteBudget) Output {
	in = s.trusted(in)
	out := newOutput()
	pods := s.observe(in, out)
	s.expire(in.Now)
	in.Node = s.rest.off(in.Node)
	answer := func(p podCandidates, u *candidate) {
		if t, ok := Latest(throttles, u.Inode); ok {
			s.answerThrottle(in, p, u, t, &budget, out)
		}
		if u.Looked {
			out.Views = append(out.Views, u.viewAgain(in, &p))
		}
	}
	for _, p := range pods { // outermost first
		if p.pod != nil {
			answer(p, p.pod)
		}
		for _, scope := range p.scopes {
			answer(scope, scope.pod)
		}
		for _, u := range p.containers {
			answer(p, u)
		}
	}
	out.Node = in.Node
	return *out
}

// Latest is the latest event of a group.
func Latest(throttles []Throttle, inode uint64) (Throttle, bool) {
	var found Throttle
	for _, t := range throttles {
		if t.Inode == inode && (found.Inode == 0 || found.Ahead) { // what has begun is what is to be ended
			found = t
		}
	}
	return found, found.Inode != 0
}

// answerThrottle refills one candidate, or says why not.
func (s *State) answerThrottle(in Input, p podCandidates, u *candidate, t Throttle, budget *WriteBudget, out *Output) {
	u.bookThrottle(t)
	if t.At.Before(u.m.refilled) {
		return // a write has ended it since
	}
	if t.Ahead && in.Now.Before(t.Due()) && u.saves(in.Now) {
		out.Later = append(out.Later, t)
		return
	}
	why := u.hopeless(in, &p, t)
	if u.capped && !t.Ahead && t.Expires.Sub(u.m.cappedUntil) > u.period()/2 { // once a period
		u.stands, u.m.cappedUntil = max(0, t.Expires.Sub(t.At)), t.Expires
	}
	if why == "" && !u.Starting && !budget.affords(u.m.throttledPeriods.limitTooLow(in.Now)) {
		why = "too many writes"
	}
	if why == "" && !u.covered() {
		why = s.spare(in, &p, u, t)
	}
	if why != "" {
		u.why = "throttled, and not refilled: " + why
	} else {
		u.refill(in.Now, t, out)
		budget.Left--
	}
	if t.Bandwidth != u.Disk {
		out.Looks[u.ID] = in.Now
	}
	u.m.why = u.why
}

// barred says why a candidate is not to be refilled now nor in the next periods, or "": then its throttles need not be reported.
func (u *candidate) barred(in Input, p *podCandidates) string {
	switch left := u.m.budget.left(); {
	case in.Held:
		return "writing is held"
	case !p.refillable(u):
		return fmt.Sprintf("policy %s, class %q", u.Strategy.Policy, u.Class)
	case u.Paused:
		return WhyAtLimit
	case u.QuotaBlocked.LeftAlone() || u.BurstBlocked.LeftAlone():
		return "another program wrote its files"
	case left < u.Disk.Quota:
		return "the budget above the limit is used up"
	case u.topped():
		return u.atCap("leaves no room for another quota")
	case in.Node.State() == NodeOverload && !u.Starting && !u.covered(): // a start is refilled as soon as that ends (spare)
		return NodeOverload.words()
	}
	return ""
}

// hopeless says why a candidate is not to be refilled whatever the node can spare, or "".
func (u *candidate) hopeless(in Input, p *podCandidates, t Throttle) string {
	if why := u.barred(in, p); why != "" {
		return why
	}
	switch {
	case !u.Ready || t.Bandwidth != u.Disk:
		return "its limit is just being set"
	case u.BurstBlocked == plan.Waiting:
		return "waiting after a refused write"
	case !t.Expires.IsZero() && t.Expires.Sub(in.Now) < leastGain:
		return "its period ends"
	case u.full(in.Now) || t.Counted && t.Used >= u.cap():
		return u.atCap("is reached")
	}
	return ""
}

// atCap is why nothing may be handed out in this period, and is remembered.
func (u *candidate) atCap(what string) string {
	u.capped = true
	return fmt.Sprintf("the cap of %v a period %s", u.cap(), what)
}

// topped says whether the quota is raised so far that no period has room for another one.
func (u *candidate) topped() bool { return u.raised() && 2*u.Disk.Quota > u.cap() }

// full says whether the standing period has no room for another quota.
func (u *candidate) full(now time.Time) bool {
	return u.m.standing(now, u.Disk).room(u.cap(), u.Disk.Burst, false, u.cpus) < u.Disk.Quota
}

// saves says whether a refill ahead of a throttle is to come as late as can be, for the sake of what it takes away: the
// cap has been come to of late, and there is no buffer for what is left.
func (u *candidate) saves(now time.Time) bool {
	return u.Disk.Burst == 0 && now.Sub(u.m.cappedUntil) < capMemory
}

// refillable says whether a candidate may be refilled at all: a pod may for the sake of its containers.
func (p *podCandidates) refillable(u *candidate) bool {
	if !u.isPod {
		return u.Strategy.Policy.Quota() && u.Class.Burstable()
	}
	for _, c := range p.containers {
		if !c.Paused && c.Strategy.Policy.Quota() && c.Class.Burstable() {
			return true
		}
	}
	return false
}

// covered says whether the candidate has saved up what a refill hands out.
func (u *candidate) covered() bool {
	return u.Strategy.Policy.Burst() && u.m.savings >= u.Disk.Quota
}

// spare says why the node cannot spare a refill, or "" and books it.
func (s *State) spare(in Input, p *podCandidates, u *candidate, t Throttle) string {
	s.refills = slices.DeleteFunc(s.refills, func(r relief) bool { return r.of == u.ID })
	cost := u.Disk.Quota.Seconds() / nodeSpan.Seconds()
	room, line := in.Node.headroom(s.rest.above), "90 % of the threshold"
	if u.Starting {
		room, line = in.Node.below(in.Node.Threshold(), s.rest.above), "the threshold"
	}
	switch state := in.Node.State(); {
	case state != NodeIdle && (state != NodeCooling || !u.Starting):
		return state.words()
	case !u.m.wait.Ready(in.Now):
		return "taken back because of the node's load, waiting"
	case room-s.rest.held-sum(s.refills) < cost/2:
		return "node has no headroom below " + line
	}
	until := t.Expires
	if until.IsZero() {
		until = in.Now.Add(u.period())
	}
	if !u.isPod || p.itself {
		s.refills = append(s.refills, relief{u.ID, until, cost})
	}
	return ""
}

// refill is the write, charged.
func (u *candidate) refill(now time.Time, t Throttle, out *Output) {
	u.why = "throttled, and refilled"
	switch {
	case t.Ahead:
		u.why = fmt.Sprintf("refilled before it was throttled, %v before its period's end", t.Expires.Sub(now).Round(time.Millisecond))
	case !t.Expires.IsZero():
		u.why = fmt.Sprintf("throttled %v before its period's end, and refilled", t.Expires.Sub(t.At).Round(time.Millisecond))
	}
	out.Intents = append(out.Intents, plan.Intent{Key: plan.Key{ID: u.ID, Knob: plan.Burst}, Value: plan.Time(u.Disk.Burst), Refill: true, Why: u.why})
	out.Kinds[KindRefill]++
}

// bookThrottle books an event.
func (u *candidate) bookThrottle(t Throttle) {
	m := u.m
	u.stood = true
	m.throttledAt, m.everStood = t.At, true
	book := m.throttledPeriods.hit
	if t.Ahead || u.Starting {
		book = m.throttledPeriods.want
	}
	if t.Expires.IsZero() {
		book(t.At, t.Bandwidth.Period)
		return
	}
	m.phase.Pin(t.Expires, t.Bandwidth.Period)
	book(t.Expires, t.Bandwidth.Period)
	m.correct(t)
	if begin := t.Expires.Add(-t.Bandwidth.Period); t.Handed >= 0 && m.lastWrite.Before(begin) {
		m.saved = max(0, t.Handed-t.Bandwidth.Quota)
	}
}

// throttledPeriods are those in which a group was throttled, or was about to be.
type throttledPeriods struct {
	recent [lastingHits]time.Time // their ends, oldest first
	rare   time.Time              // the end of the last one that did not come soon after others
	begun  time.Time              // the end of the last one in which it was throttled
	minute time.Time              // when the count of those began
	count  int64
	until  time.Time // the limit is too low until then
}

// want books a period whose quota does not do, once, whether that stopped the group or was foreseen.
func (s *throttledPeriods) want(end time.Time, period time.Duration) {
	last := s.recent[lastingHits-1]
	if end.Sub(last) < period/2 {
		return
	}
	copy(s.recent[:], s.recent[1:])
	s.recent[lastingHits-1] = end
	if !s.lasting(end, period) {
		s.rare = end
	}
}

// hit books a period in which the group was throttled, once.
func (s *throttledPeriods) hit(end time.Time, period time.Duration) {
	s.want(end, period)
	if end.Sub(s.begun) < period/2 {
		return
	}
	s.begun = end
	if end.Sub(s.minute) >= time.Minute {
		if period > 0 && end.Sub(s.minute) < 2*time.Minute && s.count > int64(time.Minute/period)/2 {
			s.until = end.Add(time.Minute + verdictSlack)
		}
		s.minute, s.count = end, 0
	}
	s.count++
}

// lasting says whether throttles come period after period.
func (s *throttledPeriods) lasting(now time.Time, period time.Duration) bool {
	return now.Sub(s.recent[0]) <= lastingPeriods*period
}

// enduring says whether they have done so for as long as a raise looks back.
func (s *throttledPeriods) enduring(now time.Time, period time.Duration) bool {
	return s.lasting(now, period) && now.Sub(s.rare) >= demandSpan
}

// limitTooLow says whether the limit is too low.
func (s *throttledPeriods) limitTooLow(now time.Time) bool { return now.Before(s.until) }
