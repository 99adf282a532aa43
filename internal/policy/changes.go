package policy

import (
	"fmt"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// makeIntents turns the decisions into intents, containers before their pod.
func makeIntents(in Input, pods []podCandidates, out *Output) {
	for _, p := range pods {
		in.yield()
		for _, u := range p.containers {
			if !p.raises(u) {
				u.release()
			}
			u.removeQuota()
			u.requested, u.buffer = u.burst(in.Now, in.Rules)
			u.pace(in, out)
		}
		if p.pod != nil {
			p.plan(in, out)
		}
		for _, u := range p.containers {
			u.emit(in, &p, out)
		}
		for i := range p.scopes {
			p.scopes[i].plan(in, out)
			p.scopes[i].pod.emit(in, &p.scopes[i], out)
		}
		if p.pod != nil {
			p.pod.emit(in, &p, out)
		}
	}
}

// plan decides the changes of the pod by those of its containers, and keeps these within the pod's quota.
func (p *podCandidates) plan(in Input, out *Output) {
	u := p.pod
	p.follow(in)
	u.requested, u.buffer = p.burst(in.Now, in.Rules)
	if !p.raises(u) {
		return
	}
	if u.pace(in, out); in.Rules.Nested {
		p.keepWithin(in)
	}
}

// release restores the quota of a group that is not raised, where the file still holds a value of ours.
func (u *candidate) release() {
	u.decision = decision{u.Disk.Quota, "", u.why}
	if !u.QuotaBlocked.LeftAlone() && u.Disk.Quota != u.limit.Quota {
		u.decision = decision{u.limit.Quota, KindRestore, fmt.Sprintf("class %s is not raised", u.Class)}
	}
}

// pace postpones a change of quota until its write grants no more than the cap (grant.go), or cuts the quota to what
// may be written now, and requests a reading for the time when the full quota can be written.
func (u *candidate) pace(in Input, out *Output) {
	if u.quota == u.Disk.Quota || u.kind == KindRestore || u.kind == KindReserve || u.QuotaBlocked.LeftAlone() {
		u.m.overdue = time.Time{}
		return
	}
	p := u.m.currentPeriod(in.Now, u.Disk)
	room := u.room(p)
	lowering := u.quota < u.Disk.Quota
	exact := lowering && u.kind == KindBound // an administrator's bound is not exceeded at an edge either
	if u.quota <= room || lowering && !exact && p.edge >= 0 && p.edge <= u.period()/nearEdge {
		u.m.overdue, u.m.seeking = time.Time{}, time.Time{}
		return
	}
	width, known := u.m.phase.Known()
	bridged := known && !lowering && u.refilled(in) && !u.fresh(in.Now, width)
	switch {
	case bridged: // refills suffice until a period has just begun, when the largest quota may be written
		out.Looks[u.ID] = u.m.phase.Next(in.Now).Add(width)
	case known && !exact && (lowering || u.gains(p, width)):
		out.Looks[u.ID] = u.m.phase.Next(in.Now.Add(2 * writeDelay))
	case known && (exact || u.m.seeks(in.Now)):
		out.Looks[u.ID] = u.m.around(in.Now, width)
	}
	switch {
	case lowering:
		u.wait(in, known)
	case bridged:
		u.stay(in.Now, in.Rules)
	case room > u.Disk.Quota && worth(u.Disk.Quota, room):
		u.quota, u.m.seeking = room, time.Time{}
	default:
		u.stay(in.Now, in.Rules)
	}
}

// room is the largest quota that may be written in a period, beside the burst that the file holds after this turn.
func (u *candidate) room(p period) time.Duration {
	burst := u.buffer
	if !u.BurstBlocked.Allows(u.Disk.Burst, u.buffer, u.limit.Burst) { // it is not written (emit)
		burst = u.Disk.Burst
	}
	return p.room(u.cap(), burst, burst != u.Disk.Burst, u.cpus).Truncate(time.Microsecond)
}

// fresh says whether a period is known to have begun a short time ago.
func (u *candidate) fresh(now time.Time, width time.Duration) bool {
	begun := u.m.begun(now, u.period())
	return begun < u.period() && begun <= 3*width
}

// For so long, and so often, a moment for a raise is sought that no edge allows. That is so below a cap of two quotas;
// the extra readings cost as much as the usual ones.
const seekFor, seekEvery = 2 * time.Second, 30 * time.Second

// seeks says whether readings are to find a moment for a raise: in the first seekFor of each seekEvery that it waits.
func (m *memory) seeks(now time.Time) bool {
	if m.seeking.IsZero() || now.Sub(m.seeking) >= seekEvery {
		m.seeking = now
	}
	return now.Sub(m.seeking) < seekFor
}

// around is when to read the group next, so that little is used of the period in which it is decided on, and that is
// known: as late as it is sure that the period has not begun, and as soon as it is sure that it has. Where the begin is
// known badly, the reading halves the time in which it may lie.
func (m *memory) around(now time.Time, width time.Duration) time.Time {
	next := m.phase.Next(now)
	switch before := next.Add(-width / 2); {
	case width > m.inFile.Period/nearEdge:
		return next
	case before.After(now.Add(writeDelay)):
		return before
	default:
		return next.Add(width/2 + time.Microsecond)
	}
}

// gains says whether a larger quota may be written at the period's edge, when it is known to within width, than now.
func (u *candidate) gains(now period, width time.Duration) bool {
	edge := period{handed: u.Disk.Quota + u.m.saved, used: now.used, edge: width / 2}
	room := u.room(edge)
	return room > u.Disk.Quota && worth(u.Disk.Quota, min(room, u.quota))
}

// stay leaves the quota unchanged in this turn and sizes the burst for it.
func (u *candidate) stay(now time.Time, r Rules) {
	u.decision = decision{u.Disk.Quota, "", u.why + "; waiting for a moment to write"}
	u.requested, u.buffer = u.burst(now, r)
}

// Overdue ends the reason of a lowering for which no moment came in which its write grants nothing beyond the cap.
const Overdue = "; it could wait no longer"

// wait postpones a lowering to the next edge of the period where that is known, else until patience ends. Then the
// lowering is written in any case, and charged to the budget.
func (u *candidate) wait(in Input, known bool) {
	if u.m.overdue.IsZero() {
		u.m.overdue = in.Now
	}
	bound := patience
	if known {
		bound += u.period()
	}
	if in.Now.Sub(u.m.overdue) < bound {
		u.stay(in.Now, in.Rules)
		return
	}
	u.buffer = min(u.buffer, u.Disk.Burst) // of two writes, the one of the burst waits for the next period
	u.m.budget.charge(u.quota)
	u.why += Overdue
}

// emit appends the changes of one candidate.
func (u *candidate) emit(in Input, p *podCandidates, out *Output) {
	if u.quota != u.Disk.Quota && u.QuotaBlocked.Allows(u.Disk.Quota, u.quota, u.limit.Quota) {
		out.add(u, plan.Quota, u.quota, u.kind, u.why)
	}
	if u.buffer != u.Disk.Burst && u.BurstBlocked.Allows(u.Disk.Burst, u.buffer, u.limit.Burst) {
		kind, why := KindBurst, fmt.Sprintf("burst of %v requested, %v fits", u.requested, u.buffer)
		if u.buffer == u.limit.Burst {
			kind, why = KindRestore, "no burst is requested"
		}
		out.add(u, plan.Burst, u.buffer, kind, why)
	}
	u.m.why = u.why
	out.Views = append(out.Views, u.viewWhole(in, p))
}

// burst is the requested burst and the value for the file. While the quota is raised the buffer only shrinks: a write
// that enlarges it would grant one more quota. It grows again when the raise is given back.
func (u *candidate) burst(now time.Time, r Rules) (requested, buffer time.Duration) {
	if !u.bursts() {
		return u.limit.Burst, u.ownerBurst() // no burst is requested
	}
	requested, buffer = burstFor(u.limit, u.Strategy, u.quota, r)
	return requested, u.fit(now, buffer, r)
}

// bursts says whether the candidate gets a burst buffer of ours.
func (u *candidate) bursts() bool {
	return u.Paused == "" && u.Strategy.Policy.Burst() && u.limit.Limited() && u.Class.Burstable()
}

// ownerBurst is the burst of a candidate that gets none of ours.
func (u *candidate) ownerBurst() time.Duration {
	if u.BurstBlocked.LeftAlone() {
		return u.Disk.Burst
	}
	return u.limit.Burst
}

// fit cuts a burst to what may be written now.
func (u *candidate) fit(now time.Time, buffer time.Duration, r Rules) time.Duration {
	switch {
	case !r.Burst:
		return u.Disk.Burst
	case u.quota > u.limit.Quota:
		return min(buffer, u.Disk.Burst)
	case u.quota == u.Disk.Quota && now.Sub(u.m.lastWrite) < u.period():
		u.postponed = buffer > u.Disk.Burst
		return min(buffer, u.Disk.Burst) // two writes in one period grant two quotas
	}
	return buffer
}

// stable says whether there is nothing to do as long as the group uses no CPU, no program writes its files and no
// refused write is due again.
func (u *candidate) stable(now time.Time) bool {
	if u.CPUs > 0 { // the node's load is counted without its exclusive CPUs and its use of them (guard.go)
		return false
	}
	return needsNoWrite(u.QuotaBlocked, u.Disk.Quota, u.quota, u.limit.Quota) &&
		needsNoWrite(u.BurstBlocked, u.Disk.Burst, u.buffer, u.limit.Burst) &&
		!u.postponed && u.m.overdue.IsZero() && u.m.wait.Ready(now)
}

// needsNoWrite says whether a file needs no write, or none before a refused one is tried again.
func needsNoWrite(b plan.Blocked, from, to, limit time.Duration) bool {
	if b.NotRaised() {
		return from == to || !b.Allows(from, to, limit)
	}
	return from == to && (b == plan.Free || b == plan.NoTask)
}

// viewWhole is the view of a candidate in a full turn.
func (u *candidate) viewWhole(in Input, p *podCandidates) View {
	decided := p.raises(u) // the usage of a pod whose quota follows its containers is not needed
	raised := decided && u.raised()
	watched := raised || u.m.lately(in.Now)
	if decided && u.Strategy.Policy.Quota() && u.Paused == "" && u.limit.Limited() && u.m.budget.left() > 0 {
		// until the limit covers the demand
		watched = watched || u.m.everThrottled
	}
	if u.refilled(in) && !raised {
		watched = in.Now.Sub(u.m.throttledAt) < lastingPeriods*u.period()
	}
	watched = watched || u.m.inSpell()
	u.m.whole, u.m.watched = WholeView{u.quota, u.requested, u.m.budget.left()}, watched
	v := u.view(in, p, watched)
	v.Stable = !watched && u.stable(in.Now)
	return v
}

func (u *candidate) view(in Input, p *podCandidates, watched bool) View {
	v := View{WholeView: u.m.whole, Cgroup: u.ID, Limit: u.limit, Why: u.why, Window: u.window, AtCap: u.atCap,
		Watched: watched, LimitTooLow: u.m.throttledPeriods.limitTooLow(in.Now), Bounded: u.bounded()}
	v.SuppressEvents = watched && u.barred(in, p).why != ""
	u.m.eventsSuppressed = v.SuppressEvents
	return v
}

// add appends one intent and counts its kind.
func (o *Output) add(u *candidate, knob plan.Knob, to time.Duration, kind Kind, why string) {
	in := plan.Intent{Key: plan.Key{ID: u.ID, Knob: knob}, Value: plan.Time(to), Why: why, Release: kind == KindRestore}
	if knob == plan.Quota {
		in.Min, in.Max = plan.Time(u.limit.Quota), plan.Time(max(to, capFor(u.limit, u.Strategy)))
	} else {
		in.Min, in.Max = plan.Time(0), plan.Time(max(u.limit.Quota, u.Disk.Burst, to))
	}
	o.Intents = append(o.Intents, in)
	o.Kinds[kind]++
}

func scale(d, from, to time.Duration) time.Duration {
	if from == to || from <= 0 || d == cpu.Unlimited {
		return d
	}
	return time.Duration(float64(d) * float64(to) / float64(from)).Truncate(time.Microsecond)
}

// Removing the quota of a group that has exclusive CPUs.
//
// A group with exclusive CPUs takes no CPU time from others when it uses them, and a quota would throttle it on CPUs
// that no other group may use. So its quota is removed, and the quota of its pod as well, which would throttle it too.
// A pod whose own limit binds before those of its containers keeps its quota: the limit is for all of them together,
// and others in the pod may have none of their own.
// A group that is bound to CPUs that are not exclusive keeps its quota, and no raise exceeds the number of these CPUs.

// removeQuota decides for a candidate that has exclusive CPUs, or has them no longer.
func (u *candidate) removeQuota() {
	switch {
	case u.QuotaBlocked.LeftAlone() || !u.limit.Limited():
	case u.Unlimited && u.Paused == "" && (u.Disk.Quota == cpu.Unlimited || !u.QuotaBlocked.NotRaised()):
		u.decision = decision{cpu.Unlimited, KindReserve, "it has exclusive CPUs: no quota"}
	case u.Disk.Quota == cpu.Unlimited:
		u.decision = decision{u.limit.Quota, KindRestore, "it has no exclusive CPUs any more"}
	}
}
