package policy

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/workload"
)

const (
	notRefilled   = "throttled, and not refilled: "
	tooManyWrites = "too many writes"
)

// refusal is why a throttle is not answered by a refill; of none why is "".
type refusal struct {
	kind Kind
	why  string
}

// refuse records a refusal.
func (u *candidate) refuse(r refusal, out *Output) {
	u.why = notRefilled + r.why
	out.Kinds[r.kind]++
}

// Refuse says whether the throttle of a group is refused unseen: its tenant's share of the writes is used up. batch
// counts, for each tenant, the throttles let through of those that are answered together. To read a pod takes the
// thread longer than a write: a tenant with a thousand groups would delay all others by what it is refused. What the
// event says is booked; a start is never refused so.
func (s *State) Refuse(now time.Time, id workload.ID, t bandwidth.Throttle, batch map[string]int) bool {
	m := s.groups[id]
	if m == nil || now.Sub(m.started) < NodeSpan || t.At.Before(m.refilled) {
		return false
	}
	of := m.owner.Tenant()
	if s.writes.Affords(now, of, m.need(now, false), batch[of]) {
		batch[of]++
		return false
	}
	m.bookThrottle(t, false)
	m.quieten(now, t.Bandwidth.Period)
	m.why = notRefilled + tooManyWrites
	return true
}

// quieten has a group that is throttled all the time send no events for a while. Events until then make it no longer.
func (m *memory) quieten(now time.Time, period time.Duration) {
	if m.quiet.Ready(now) && m.throttledPeriods.lasting(now, period) {
		m.quiet.Hit(now, firstQuiet, mostQuiet)
	}
}

// barred says why a candidate is not to be refilled now nor in the next periods: then its throttles need not be
// reported.
func (u *candidate) barred(in Input, p *podCandidates) refusal {
	switch left, why := u.m.budget.left(), p.unrefillable(u); {
	case in.Held:
		return refusal{KindRefusedOther, "writing is held"}
	case why != "":
		return refusal{KindRefusedOther, why}
	case u.Paused != "":
		return refusal{KindRefusedOther, u.Paused}
	case u.QuotaBlocked.LeftAlone() || u.BurstBlocked.LeftAlone():
		return refusal{KindRefusedOther, "another program wrote its files"}
	case u.m.withdrawn() != "":
		return refusal{KindRefusedOther, u.m.withdrawn()}
	case left < u.Disk.Quota:
		return refusal{KindRefusedBudget, "the budget above the limit is used up"}
	case u.raised() && 2*u.Disk.Quota > u.cap(): // no period has room
		return refusal{KindRefusedCap, u.capReason("leaves no room for another quota")}
	case !u.m.quiet.Ready(in.Now):
		return refusal{KindRefusedWrites, tooManyWrites + ", and throttled all the time"}
	case in.Node.State() == NodeOverload && !u.Starting && !u.covered(): // spare refills a start as soon as it ends
		return refusal{KindRefusedNode, NodeOverload.words()}
	}
	return refusal{}
}

// hopeless says why a candidate is not refilled however much the node can spare.
func (u *candidate) hopeless(in Input, p *podCandidates, t bandwidth.Throttle) refusal {
	if not := u.barred(in, p); not.why != "" {
		return not
	}
	switch {
	case !u.Ready || t.Bandwidth != u.Disk:
		return refusal{KindRefusedOther, "its limit is just being set"}
	case u.BurstBlocked.NotRaised():
		return refusal{KindRefusedOther, "waiting after a refused write"}
	case !t.Expires.IsZero() && t.Expires.Sub(t.At) < leastGain:
		return refusal{KindRefusedShort, "its period ends"}
	case !t.Expires.IsZero() && t.Expires.Sub(in.Now) < leastGain:
		return refusal{KindRefusedLate, fmt.Sprintf("its period ends, %v after it began",
			in.Now.Sub(t.At).Round(100*time.Microsecond))}
	case u.full(in.Now) || t.UseKnown && t.Used >= u.cap():
		return refusal{KindRefusedCap, u.capReason("is reached")}
	}
	return refusal{}
}

// capReason is the reason that the cap forbids a grant in this period. It marks the candidate as capped.
func (u *candidate) capReason(what string) string {
	u.capped = true
	by := ""
	if bound := u.boundBy(); bound != "" {
		by, u.cutBy = " ("+bound+")", bound
	} else if u.Strategy.CFSQuotaBurstPercent < u.configured.CFSQuotaBurstPercent {
		by = " (cut by loadLinePercent)" // a higher cfsQuotaBurstPercent would not help
	}
	return fmt.Sprintf("the cap of %v a period%s %s", u.cap(), by, what)
}

// full says whether the current period has no room for another quota.
func (u *candidate) full(now time.Time) bool {
	return u.m.currentPeriod(now, u.Disk).room(u.cap(), u.Disk.Burst, false, u.cpus) < u.Disk.Quota
}

// unrefillable says why a candidate is never refilled, or "". A pod may be refilled if one of its containers may.
func (p *podCandidates) unrefillable(u *candidate) string {
	may := func(c *candidate) bool { return c.Paused == "" && p.unrefillable(c) == "" }
	switch {
	case u.isPod && !slices.ContainsFunc(p.containers, may):
		return "no container of it may be refilled"
	case !u.isPod && !u.Class.Burstable():
		return "class " + string(u.Class)
	case !u.isPod && !u.Strategy.Policy.Quota():
		return "policy " + string(u.Strategy.Policy)
	}
	return ""
}

// covered says whether the candidate has saved up what a refill grants.
func (u *candidate) covered() bool {
	return u.Strategy.Policy.Burst() && u.m.savings >= u.Disk.Quota
}
