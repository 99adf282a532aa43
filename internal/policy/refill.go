package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/plan"
	"plimsoll/internal/tenant"
)

// Refills: ending a throttle in the millisecond in which it begins.
//
// Problem: a group that has used up its quota is throttled until its period ends. Raising the quota ends the throttle,
// but a runtime that reads cpu.max meanwhile (GOMAXPROCS, the JVM) takes the raise for the limit, a resize finds a
// value that is not the owner's, and an agent that dies leaves the raise behind.
//
// Approach: rewriting the burst file with its current value refills the group by one quota and unthrottles it at once
// (kernel/sched/core.c, tg_set_cfs_bandwidth), and no value changes. So a throttle that the kernel reports is answered
// by such a refill, if
//   - the cap allows it: a refill grants one quota and is charged like any other write (grant.go), against the runtime
//     that, by the kernel's account, the period can use by now: what it has used, and what is left in the pool and on
//     CPUs. A refill takes away the runtime that CPUs hold, so that this is less than the sum of the grants. Where one
//     CPU had taken the slice, almost nothing of a refill may remain;
//   - the budget above the limit is not used up;
//   - the node can spare it (share.go), unless the group has saved it up: a strategy with a burst of cpuBurstPercent
//     entitles the group to the time left unused, up to that burst, of which mainline itself keeps one quota at most
//     (burst <= quota). Like the kernel's own burst, such a refill does not depend on the load of the node.
//
// The effect of a refill is judged by what the group uses after it (effect.go).
//
// A throttle may be reported more than once: when it is predicted and when it begins, and by several CPUs. The last
// write of quota or burst has ended each throttle that began before it, so such a throttle needs no further refill.
//
// The quota itself is raised only for lasting demand: throttles in lastingHits of lastingPeriods periods.
//
// A start is the first seconds of a container (startupSeconds), or until its owner says that it is ready. A runtime
// such as the JVM reads its limit then, and sizes its heap, its garbage collector and its pools by it for life; so the
// quota stays what it is however long the demand lasts. Instead a start is refilled however often it is throttled, from
// writes of its own (tenant.Writes) and up to a cap of its own (startupBurstPercent): what it needs, once, says nothing
// of its limit, and it is over the sooner the more it gets. The node spares a start all below the threshold, and others
// what is below 90 % of it: that gap keeps raises, which stand, from being made and taken back in turns, and what a
// start is handed ends with its period. Its throttles are reported above the threshold too: the use falls as soon as it
// is refilled no more, and then it is its turn again. Where throttles are polled for, a start is as any other time.
//
// A refill adds load to the node only until its period ends or the group is throttled again; from then on the load
// shows in the node's use. Until then it counts as an addition to the mean over NodeSpan. To count it for longer would
// count it twice: a start that may use three quotas a period would not get half of them on an otherwise idle machine.
// The refill of a pod whose containers have limits of their own is not counted: the containers can use no more than
// their own grants. On a small machine a quota is a large part of the headroom, and so is rounded: headroom for half of
// it suffices. The mean use then reaches the line, and does not stop one quota below it.
//
// A raise that is granted waits for the begin of a period (changes.go). Until it is written, the group's refills come
// out of it: next to it there may be no headroom for them.
//
// Whoever is first has what the node can spare, below 90 % of the threshold. From there to the threshold only those
// namespaces are refilled that have less above their limits than an equal part of what there is for that, by what the
// node uses and not by what others were granted; and a start like any other, unless its namespace is the only one. So a
// tenant with many containers that are throttled all the time, or started over and over, fills the node up to 90 %, and
// what others are due comes on top; where that overloads the node, raises are taken back, first those of the namespace
// that has most (guard.go). Where nothing tells of namespaces all groups are in one: they are the administrator's.
//
// Writes are shared by tenants too (tenant.Writes). A throttle that is refused is charged like a refill, for it takes
// the thread about as long. Where a tenant's share is used up, its groups that are throttled in most periods send no
// events for a second, and for longer each time (View.SuppressEvents), so that a real-time thread is not kept busy with
// refusals. Until then they are refused unseen (refuse.go). Where readings show lasting demand, the quota is raised.
//
// Terminology: a refill is the rewrite; a throttled period is one in which a throttle began or was foreseen, or that
// one stood through; the limit of a group is too low when it was throttled in more than half of the periods of a
// minute, and it is then refilled only while writes are not scarce.
//
// Ahead of the throttle: where the eBPF program predicts that the runtime will be used up before the period ends, a
// refill in time prevents the throttle. It grants no more than a refill after the throttle would; but it is unneeded if
// the job ends by itself at the last moment. The program predicts one tick ahead, for quotas of 20 ms and more
// (probe/bpf/ahead.h): of smaller quotas, most predictions would be false. A refill discards the runtime that is left
// in the pool, unless there is a burst buffer for it, and on CPUs: 4 ms each on two CPUs are 8 ms of CPU time less
// below the cap. So for a group that has recently reached its cap the refill is delayed as long as possible: until a
// moment before the first of its CPUs would be throttled. Other groups would gain nothing from the delay.
//
// Known limits: within a namespace refills are handed out first come, first served, a quota at a time, while raises are
// shared by weight. A raise that stands is not taken from one for another's sake unless the node is overloaded.
// A start that exits is forgotten at once, and the node's mean holds what it used for a moment longer (NodeSpan).
// Kernels below 5.14 have no burst file, and are raised instead.

const (
	// leastGain is the shortest throttle that a refill ends: just before the period's end, a refill gains nothing.
	leastGain = 2 * time.Millisecond
	// capMemory is how long it counts that a group has come to its cap.
	capMemory = 10 * time.Minute
	// lead is how long before a predicted throttle a delayed refill is due. The prediction is exact to a quarter of a
	// millisecond, but the agent has to wake up and write: on a virtual machine that shares its CPUs, one timer in ten
	// is a millisecond late. There 14 % of the throttles still began with 1.5 ms (cfsQuotaBurstOnly in the demo), and 1
	// % with 3 ms.
	lead = 3 * time.Millisecond
	// For so long the events of a group are suppressed that is throttled all the time, and whose tenant has used up its
	// share: at first, and at most.
	firstQuiet, mostQuiet = time.Second, 8 * time.Second
)

// Due is when the caller passes a postponed throttle (Output.Later) to AnswerThrottles again.
func Due(t bandwidth.Throttle) time.Time { return t.Dry.Add(-lead) }

// AnswerThrottles takes a turn for groups that were throttled a moment ago. in.Pods are the pods that they are in; of
// the groups those with an event are to be looked at.
func (s *State) AnswerThrottles(in Input, throttles []bandwidth.Throttle) Output {
	in = s.trusted(in)
	out := newOutput()
	pods := s.observe(in)
	s.expire(in.Now)
	in.Node = s.pool.off(in.Node)
	answer := func(p podCandidates, u *candidate) {
		if t, ok := Latest(throttles, u.Inode); ok {
			s.answerThrottle(in, p, u, t, out)
		}
		if u.Looked {
			watched := u.m.watched || u.throttled || u.m.inSpell()
			out.Views = append(out.Views, u.view(in, &p, watched))
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

// Latest is the latest event of a group. A throttle that has begun has precedence over one that is foreseen.
func Latest(throttles []bandwidth.Throttle, inode uint64) (bandwidth.Throttle, bool) {
	var found bandwidth.Throttle
	for _, t := range throttles {
		if t.Inode == inode && (found.Inode == 0 || found.Ahead || !t.Ahead && t.At.After(found.At)) {
			found = t
		}
	}
	return found, found.Inode != 0
}

// answerThrottle refills one candidate, or says why not.
func (s *State) answerThrottle(in Input, p podCandidates, u *candidate, t bandwidth.Throttle, out *Output) {
	u.bookThrottle(t)
	if t.At.Before(u.m.refilled) {
		return // a write has ended it since
	}
	if t.Ahead && in.Now.Before(Due(t)) && u.saves(in.Now) {
		out.Later = append(out.Later, t)
		return
	}
	paid := s.writes.Afford(in.Now, u.m.owner.Tenant(), u.m.need(in.Now, u.Starting))
	not := u.hopeless(in, &p, t)
	if u.capped && !t.Ahead && t.Expires.Sub(u.m.cappedUntil) > u.period()/2 { // once a period
		u.atCap, u.m.cappedUntil = max(0, t.Expires.Sub(t.At)), t.Expires
	}
	if not.why == "" && !paid {
		not = refusal{KindRefusedWrites, tooManyWrites}
	}
	if not.why == "" && !u.covered() {
		not = refusal{KindRefusedNode, s.spare(in, u)}
	}
	if not.why == "" && u.withhold(in) {
		not = refusal{KindRefusedOther, WhyWithheld}
	}
	switch {
	case not.why == "":
		s.book(in, &p, u, t)
		u.refill(in.Now, t, out)
	case paid:
		s.writes.Refused()
		u.refuse(not, out)
	default:
		u.refuse(not, out)
		u.m.quieten(in.Now, u.period())
	}
	if t.Bandwidth != u.Disk {
		out.Looks[u.ID] = in.Now
	}
	u.m.why = u.why
}

// need is what a refill of the group is for.
func (m *memory) need(now time.Time, starting bool) tenant.Need {
	switch {
	case starting:
		return tenant.Start
	case m.throttledPeriods.limitTooLow(now):
		return tenant.TooLow
	}
	return tenant.Ordinary
}

// saves says whether a refill ahead of a throttle is delayed as long as possible, so that it discards little runtime:
// the group has recently reached its cap, and has no burst buffer for the runtime that is left.
func (u *candidate) saves(now time.Time) bool {
	return u.Disk.Burst == 0 && now.Sub(u.m.cappedUntil) < capMemory
}

// spare says why the node cannot spare a refill, or "".
func (s *State) spare(in Input, u *candidate) string {
	s.refills = slices.DeleteFunc(s.refills, func(r relief) bool { return r.of == u.ID })
	cost := u.Disk.Quota.Seconds() / NodeSpan.Seconds()
	granted := s.sums.granted
	if !u.raised() { // its refills come out of its raise, until that is written
		granted -= u.m.promised
	}
	favoured, room, line := u.Starting, in.Node.below(in.Node.Threshold(), s.sums.above)-granted, "the threshold"
	if within, others := s.within(in.Node, u.m.owner.Namespace, cost); others {
		favoured, room = within, in.Node.below(in.Node.Threshold(), 0)
	}
	if !favoured {
		room, line = in.Node.headroom(s.sums.above)-granted, "90 % of the threshold"
	}
	switch state := in.Node.State(); {
	case state != NodeIdle && (state != NodeCooling || !favoured):
		return state.words()
	case !u.m.wait.Ready(in.Now):
		return "taken back because of the node's load, waiting"
	case room-sum(s.refills) < cost/2:
		return "node has no headroom below " + line
	}
	return ""
}

// within says whether a namespace has less above its limits than its part of what there is for all, when it gets so
// much more; and whether there are others.
func (s *State) within(n Node, of string, more float64) (within, others bool) {
	has := maps.Clone(s.sums.tenants)
	if has == nil {
		has = map[string]float64{}
	}
	has[of] += more
	for _, r := range s.refills {
		has[r.tenant] += r.cpus
	}
	return has[of]*float64(len(has)) <= n.headroom(s.sums.over), len(has) > 1
}

// book keeps account of what a refill hands out, until the node's use shows it.
func (s *State) book(in Input, p *podCandidates, u *candidate, t bandwidth.Throttle) {
	until := t.Expires
	if until.IsZero() {
		until = in.Now.Add(u.period())
	}
	if !u.covered() && (!u.isPod || p.itself) {
		cpus := u.Disk.Quota.Seconds() / NodeSpan.Seconds()
		s.refills = append(s.refills, relief{u.ID, u.m.owner.Namespace, until, cpus})
	}
	if p.counts(u) {
		s.holdRefill(in.Now, u, until)
	}
}

// refill appends the intent of a refill.
func (u *candidate) refill(now time.Time, t bandwidth.Throttle, out *Output) {
	u.why = "throttled, and refilled"
	switch {
	case t.Ahead:
		left := t.Expires.Sub(now).Round(time.Millisecond)
		u.why = fmt.Sprintf("refilled before it was throttled, %v before its period's end", left)
	case !t.Expires.IsZero():
		left := t.Expires.Sub(t.At).Round(time.Millisecond)
		u.why = fmt.Sprintf("throttled %v before its period's end, and refilled", left)
	}
	key := plan.Key{ID: u.ID, Knob: plan.Burst}
	out.Intents = append(out.Intents, plan.Intent{Key: key, Value: plan.Time(u.Disk.Burst), Refill: true, Why: u.why})
	out.Kinds[KindRefill]++
}

// bookThrottle records an event.
func (u *candidate) bookThrottle(t bandwidth.Throttle) {
	u.throttled = true
	u.m.bookThrottle(t, u.Starting)
}

func (m *memory) bookThrottle(t bandwidth.Throttle, starting bool) {
	m.throttledAt, m.everThrottled = t.At, true
	book := m.throttledPeriods.hit
	if t.Ahead || starting {
		book = m.throttledPeriods.want
	}
	if t.Expires.IsZero() {
		book(t.At, t.Bandwidth.Period)
		return
	}
	if t.Bandwidth.Period == m.inFile.Period { // else the file is read anew first
		m.phase.Pin(t.Expires, t.Bandwidth.Period)
	}
	book(t.Expires, t.Bandwidth.Period)
	m.correct(t)
	if begin := t.Expires.Add(-t.Bandwidth.Period); t.Snap >= 0 && m.lastWrite.Before(begin) {
		m.saved = max(0, t.Snap-t.Bandwidth.Quota)
	}
}

// PutOff are throttles that were predicted and postponed (Output.Later).
type PutOff []bandwidth.Throttle

// Due takes out those that are due, and appends them to events. A newer event of the same group replaces a postponed
// one.
func (p *PutOff) Due(now time.Time, events []bandwidth.Throttle) []bandwidth.Throttle {
	*p = slices.DeleteFunc(*p, func(old bandwidth.Throttle) bool {
		_, newer := Latest(events, old.Inode)
		if !newer && !now.Before(Due(old)) {
			events = append(events, old)
			return true
		}
		return newer
	})
	return events
}

// Next is when the first of them is due; zero: there is none.
func (p PutOff) Next() (first time.Time) {
	for _, t := range p {
		first = Sooner(first, Due(t))
	}
	return first
}

// Sooner is the earlier of two times; a zero first is none.
func Sooner(first, at time.Time) time.Time {
	if first.IsZero() || at.Before(first) {
		return at
	}
	return first
}
