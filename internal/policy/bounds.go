package policy

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/tenant"
)

// Keeping an administrator's bounds on CPUs above limits (strategy.ExtraCores) when they are handed out.
//
// Problem: a cap is one container's, in percent of its limit. What a pod, a namespace or a node hands out above limits
// is the sum over containers, and containers come and go.
//
// Approach: whatever hands out CPUs above a limit is held by the group that they are for (tenant.Extra): a raise as
// long as the quota in the file is above the limit, a refill until its period ends. A group's cap is never above its
// limit and what the others do not hold (boundCeilings). All that writes asks for the cap: the size of a raise, the
// room in a period for a refill or for another quota (grant.go). So no sum is above its bound, whichever thread
// decides.
//
// Holding alone would leave everything to who came first. So in each whole turn the bounds are divided among all that
// want some, by reservation (keepBounds): a raise that is more than its part is lowered, and who has less gets the
// rest in the next turn. A group that is refilled wants one quota a period. A bound that is lowered binds in the same
// way.
//
// A pod whose own limit binds before its containers' do holds for itself, and what its containers are handed is within
// that. The pod of others, and the scope of a container, only follow.
//
// Known limits: a bound that leaves less than a quota leaves no room for a refill, and lasting demand alone is raised.
// A lowering that could wait no longer, and a restore, grant a quota once (grant.go). Groups with exclusive CPUs
// have no quota, and hold nothing; who may have such CPUs is bounded elsewhere (config.Tenants).

// counts says whether the candidate holds what is handed out to it: a container, or a pod by itself.
func (p *podCandidates) counts(u *candidate) bool { return u.isPod == p.itself }

// each calls for all candidates of the pods.
func each(pods []podCandidates, do func(*podCandidates, *candidate)) {
	for i := range pods {
		pods[i].each(do)
	}
}

// boundCeilings has the candidates hold what is in their files, and cuts their ceilings to what the others leave.
func (s *State) boundCeilings(in Input, pods []podCandidates) {
	if s.extra.Bound(in.Extra); !in.Extra.Bounded() {
		return
	}
	s.extra.Expire(in.Now)
	each(pods, func(p *podCandidates, u *candidate) {
		cpus := 0.0 // of one that does not count, or no longer
		if p.counts(u) {
			cpus = u.excess(u.Disk.Quota)
		}
		s.hold(in.Now, u, cpus)
	})
	each(pods, func(p *podCandidates, u *candidate) {
		switch {
		case p.counts(u):
			u.lowerCeiling(s.extra.Left(u.ID, u.m.owner))
		case p.itself && in.Rules.Nested: // the kernel takes no quota above the pod's
			u.ceiling = min(u.ceiling, max(u.limit.CPUs(), p.pod.Disk.CPUs()))
		}
	})
}

// lowerCeiling to so many CPUs above the limit, because of a bound.
func (u *candidate) lowerCeiling(cpus float64, bound string) {
	if most := u.limit.CPUs() + cpus; u.limit.Limited() && most < u.ceiling {
		u.ceiling, u.bound = most, bound
	}
}

// boundBy is the bound that keeps the candidate below what its strategy allows; "": none does.
func (u *candidate) boundBy() string {
	if u.bound == "" || u.cap() >= u.strategyCap() {
		return ""
	}
	return u.bound
}

// bounded is what a bound keeps the candidate from, if anything.
func (u *candidate) bounded() Bounded {
	if u.cutBy == "" {
		return Bounded{}
	}
	return Bounded{u.cutBy, u.excess(u.strategyCap()), u.excess(u.cap())}
}

// holdRefill has a candidate hold what its period may use above its limit, with one more quota.
func (s *State) holdRefill(now time.Time, u *candidate, until time.Time) {
	if s.extra.Bounded() {
		handed := u.m.currentPeriod(now, u.Disk).handed + u.Disk.Quota
		s.extra.HoldUntil(u.ID, u.m.owner, u.excess(min(handed, u.cap())), until)
	}
}

// keepBounds divides the bounds among the candidates that want CPUs above their limits.
func (s *State) keepBounds(in Input, pods []podCandidates) {
	if !in.Extra.Bounded() {
		return
	}
	var units []*candidate
	var claims []tenant.Claim
	each(pods, func(p *podCandidates, u *candidate) {
		if p.counts(u) && p.raises(u) {
			units = append(units, u)
			claims = append(claims, tenant.Claim{Owner: u.m.owner, Weight: u.weight(), Want: u.wants()})
		}
	})
	for i, part := range s.extra.Divide(claims) {
		u := units[i]
		s.cutToPart(u, part)
		held := u.excess(max(u.quota, u.Disk.Quota))
		s.hold(in.Now, u, held)
		if held > 0 {
			u.lowerCeiling(held, u.bound) // what is written is within that in the period that stands, too
		}
		if claims[i].Want > u.excess(u.quota)+1e-3 {
			u.cutBy = u.bound
		}
	}
}

// hold has a candidate hold so many CPUs above its limit.
func (s *State) hold(now time.Time, u *candidate, cpus float64) {
	s.extra.Hold(u.ID, u.m.owner, cpus, now, u.period())
}

// wants is how many CPUs above its limit a candidate wants: one that a bound has cut, all that its strategy allows.
func (u *candidate) wants() float64 {
	throttled := u.m.lately(u.now) && u.Strategy.Policy.Quota()
	lasts := throttled && u.m.throttledPeriods.lasting(u.now, u.period())
	switch raised := u.quota > u.limit.Quota; {
	case (raised && u.quota >= u.cap() || lasts) && u.boundBy() != "":
		return u.excess(u.strategyCap())
	case raised:
		return u.excess(u.quota)
	case throttled:
		return u.excess(min(2*u.limit.Quota, u.strategyCap()))
	}
	return 0
}

// cutToPart cuts what a candidate is to have to its part, and a raise to what nobody holds.
func (s *State) cutToPart(u *candidate, part float64) {
	if u.QuotaBlocked != plan.Free && u.QuotaBlocked != plan.NoRaise {
		return // no quota is written
	}
	if u.quota > u.Disk.Quota {
		left, _ := s.extra.Left(u.ID, u.m.owner)
		to := min(part, left)
		switch quota := u.quotaAbove(to); {
		case quota >= u.quota:
		case quota > u.Disk.Quota && worth(u.Disk.Quota, quota):
			u.quota = quota
			u.why += fmt.Sprintf("; the administrator's bounds leave %.2f CPUs", to)
		default:
			u.deny("the administrator's bounds leave no CPUs for a raise")
		}
	}
	has := u.excess(u.quota)
	if has-part >= has/keepDivisor && has > 0 || has > part && u.quota > u.cap() {
		u.decision = decision{u.quotaAbove(part), KindBound,
			fmt.Sprintf("its part of the administrator's bounds is %.2f CPUs above the limit", part)}
	}
}

// quotaAbove is the quota that is so many CPUs above the limit.
func (u *candidate) quotaAbove(cpus float64) time.Duration {
	return u.limit.Quota + time.Duration(math.Round(cpus*float64(u.period()))).Truncate(time.Microsecond)
}
