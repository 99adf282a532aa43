package policy

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

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

// barred says why a candidate is not to be refilled now nor in the next periods, or "": then its throttles need not be
// reported.
func (u *candidate) barred(in Input, p *podCandidates) string {
	switch left, why := u.m.budget.left(), p.unrefillable(u); {
	case in.Held:
		return "writing is held"
	case why != "":
		return why
	case u.Paused != "":
		return u.Paused
	case u.QuotaBlocked.LeftAlone() || u.BurstBlocked.LeftAlone():
		return "another program wrote its files"
	case u.m.withdrawn() != "":
		return u.m.withdrawn()
	case left < u.Disk.Quota:
		return "the budget above the limit is used up"
	case u.raised() && 2*u.Disk.Quota > u.cap(): // no period has room
		return u.capReason("leaves no room for another quota")
	case !u.m.quiet.Ready(in.Now):
		return "too many writes, and throttled all the time"
	case in.Node.State() == NodeOverload && !u.Starting && !u.covered(): // spare refills a start as soon as it ends
		return NodeOverload.words()
	}
	return ""
}

// hopeless says why a candidate is not refilled however much the node can spare, or "".
func (u *candidate) hopeless(in Input, p *podCandidates, t bandwidth.Throttle) string {
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
	case u.full(in.Now) || t.UseKnown && t.Used >= u.cap():
		return u.capReason("is reached")
	}
	return ""
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
