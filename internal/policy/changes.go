package policy

import (
	"fmt"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// makeIntents turns decisions into intents.
func makeIntents(in Input, pods []podCandidates, out *Output) {
	for _, p := range pods {
		for _, u := range p.containers {
			if !p.raises(u) {
				u.release()
			}
			u.lift()
			u.requested, u.buffer = u.burst(in.Now, in.Rules)
			u.pace(in, out)
			u.emit(in, &p, out)
		}
		for i := range p.scopes {
			p.scopes[i].change(in, out)
		}
		if p.pod != nil {
			p.change(in, out)
		}
	}
}

// change makes the changes of the pod, after those of its containers.
func (p *podCandidates) change(in Input, out *Output) {
	u := p.pod
	p.follow(in)
	u.requested, u.buffer = p.burst(in.Now, in.Rules)
	if p.raises(u) {
		u.pace(in, out)
	}
	u.emit(in, p, out)
}

// release takes back what is left of ours in the quota of a group that is not to be raised.
func (u *candidate) release() {
	u.decision = decision{u.Disk.Quota, "", u.why}
	if !u.QuotaBlocked.LeftAlone() && u.Disk.Quota != u.limit.Quota {
		u.decision = decision{u.limit.Quota, KindRestore, fmt.Sprintf("class %s is not raised", u.Class)}
	}
}

// pace holds a change of quota back until its write grants no more than the cap (grant.go), or cuts it to what may
// be written now, and asks for a look when it can be made whole.
func (u *candidate) pace(in Input, out *Output) {
	if u.quota == u.Disk.Quota || u.kind == KindRestore || u.kind == KindReserve || u.QuotaBlocked.LeftAlone() {
		u.m.overdue = time.Time{}
		return
	}
	p := u.m.standing(in.Now, u.Disk)
	room := p.room(u.cap(), u.buffer, u.buffer != u.Disk.Burst, u.cpus).Truncate(time.Microsecond)
	lowering := u.quota < u.Disk.Quota
	if u.quota <= room || lowering && p.atEdge(u.period()) {
		u.m.overdue = time.Time{}
		return
	}
	width, known := u.m.phase.Known()
	bridged := known && !lowering && u.refilled(in) && !u.fresh(in.Now, width)
	switch {
	case bridged: // refills do until a period has just begun: then most may be written
		out.Looks[u.ID] = u.m.phase.Next(in.Now).Add(width)
	case known && (lowering || u.gains(p, width)):
		out.Looks[u.ID] = u.m.phase.Next(in.Now.Add(2 * writeDelay))
	}
	switch {
	case lowering:
		u.wait(in, known)
	case bridged:
		u.stay(in.Now, in.Rules)
	case room > u.Disk.Quota && worth(u.Disk.Quota, room):
		u.quota = room
	default:
		u.stay(in.Now, in.Rules)
	}
}

// fresh says whether a period has surely begun, and not long ago.
func (u *candidate) fresh(now time.Time, width time.Duration) bool {
	begun := u.m.begun(now, u.period())
	return begun < u.period() && begun <= 3*width
}

// gains says whether more may be written at an edge that is known as exactly as width than now.
func (u *candidate) gains(now period, width time.Duration) bool {
	edge := period{handed: u.Disk.Quota + u.m.saved, used: now.used, edge: width / 2}
	room := edge.room(u.cap(), u.buffer, u.buffer != u.Disk.Burst, u.cpus).Truncate(time.Microsecond)
	return room > u.Disk.Quota && worth(u.Disk.Quota, min(room, u.quota))
}

// stay leaves the quota as it is for this turn, and sizes the burst for that.
func (u *candidate) stay(now time.Time, r Rules) {
	u.decision = decision{u.Disk.Quota, "", u.why + "; waiting for a moment to write"}
	u.requested, u.buffer = u.burst(now, r)
}

// Overdue ends the why of a lowering that waited in vain for a moment in which it grants nothing beyond the cap.
const Overdue = "; it could wait no longer"

// wait postpones a lowering, but not for ever: to the next edge where that is known, else until patience ends. Then it
// is made all the same, and charged.
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
	u.buffer = min(u.buffer, u.Disk.Burst) // of two writes, the second waits for the next period
	u.m.budget.charge(u.quota)
	u.why += Overdue
}

// emit appends the changes of one candidate.
func (u *candidate) emit(in Input, p *podCandidates, out *Output) {
	if u.quota != u.Disk.Quota && u.QuotaBlocked == plan.Free {
		out.add(u, plan.Quota, u.quota, u.kind, u.why)
	}
	if u.buffer != u.Disk.Burst && u.BurstBlocked == plan.Free {
		kind, why := KindBurst, fmt.Sprintf("burst of %v requested, %v fits", u.requested, u.buffer)
		if u.buffer == u.limit.Burst {
			kind, why = KindRestore, "no burst is asked for"
		}
		out.add(u, plan.Burst, u.buffer, kind, why)
	}
	u.m.why = u.why
	u.m.view = u.view(in, p)
	out.Views = append(out.Views, u.m.view)
}

// burst is what is asked for and what is to be in the file. While the quota is raised the buffer only shrinks: a
// write that enlarges it would grant one more quota, and it fills again when the raise is given back.
func (u *candidate) burst(now time.Time, r Rules) (requested, buffer time.Duration) {
	if !u.bursts() {
		return u.limit.Burst, u.unburst() // nothing is asked for
	}
	requested, buffer = burstFor(u.limit, u.Strategy, u.quota, r)
	return requested, u.fit(now, buffer, r)
}

// bursts says whether the candidate is to have a burst buffer of ours.
func (u *candidate) bursts() bool {
	return !u.Paused && u.Strategy.Policy.Burst() && u.limit.Limited() && u.Class.Burstable()
}

// unburst is the burst of a candidate that is to have none of ours.
func (u *candidate) unburst() time.Duration {
	if u.BurstBlocked.LeftAlone() {
		return u.Disk.Burst
	}
	return u.limit.Burst
}

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

// stable says whether nothing is to be done as long as the group uses nothing and nobody writes its files.
func (u *candidate) stable(now time.Time) bool {
	for _, blocked := range []plan.Blocked{u.QuotaBlocked, u.BurstBlocked} {
		if blocked != plan.Free && blocked != plan.NoTask {
			return false
		}
	}
	return u.quota == u.Disk.Quota && u.buffer == u.Disk.Burst && !u.postponed && u.m.overdue.IsZero() && u.m.wait.Ready(now)
}

func (u *candidate) view(in Input, p *podCandidates) View {
	now := in.Now
	v := View{Cgroup: u.ID, IsPod: u.isPod, Limit: u.limit, RequestedQuota: u.quota, RequestedBurst: u.requested,
		BudgetLeft: u.m.budget.left(), Why: u.why, Window: u.window}
	raised := u.raised() && p.raises(u) // nothing hangs on what a pod uses that follows its containers
	v.Watched = u.m.everStood || raised
	if u.refilled(in) && !raised {
		v.Watched = now.Sub(u.m.throttledAt) < lastingPeriods*u.period()
	}
	v.LimitTooLow = u.m.throttledPeriods.limitTooLow(now)
	v.SuppressEvents = v.Watched && u.barred(in, p) != ""
	v.Stable = !v.Watched && u.stable(now)
	v.AboveLimit = u.window.AboveLimit(u.limit)
	u.m.eventsSuppressed = v.SuppressEvents
	return v
}

// viewAgain is what is to be seen of a candidate between two whole turns.
func (u *candidate) viewAgain(in Input, p *podCandidates) View {
	v := u.m.view
	v.Cgroup, v.IsPod, v.Why, v.Window, v.Watched, v.Stable = u.ID, u.isPod, u.why, u.window, v.Watched || u.stood, false
	v.Limit = u.limit
	v.AboveLimit, v.LimitTooLow, v.AtCap = u.window.AboveLimit(u.limit), u.m.throttledPeriods.limitTooLow(in.Now), u.stands
	v.SuppressEvents = v.Watched && u.barred(in, p) != ""
	u.m.eventsSuppressed = v.SuppressEvents
	return v
}

// add appends one intent, counted by its kind.
func (o *Output) add(u *candidate, knob plan.Knob, to time.Duration, kind Kind, why string) {
	in := plan.Intent{Key: plan.Key{ID: u.ID, Knob: knob}, Value: plan.Time(to), Why: why, Release: kind == KindRestore}
	if knob == plan.Quota {
		in.Min, in.Max = plan.Time(u.limit.Quota), plan.Time(u.most(to))
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
