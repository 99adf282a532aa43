package policy

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// Lifting the quota of a group that has CPUs of its own.
//
// A group that cannot use more than its own CPUs takes nothing from anybody by using them whenever it wants, and a quota
// would stop it on CPUs that nobody else may use. So its quota is lifted, and its pod's with it, for a quota of the pod
// would stop it as well. A group that is bound to some CPUs without having them to itself keeps its quota, and no raise
// of it goes beyond the number of these CPUs.

// lift makes the decision of a candidate that is to be lifted, or is not to be any longer.
func (u *candidate) lift() {
	switch {
	case u.QuotaBlocked.LeftAlone() || !u.limit.Limited():
	case u.Unlimited && !u.Paused && u.QuotaBlocked != plan.Waiting:
		u.decision = decision{cpu.Unlimited, KindReserve, "it has CPUs of its own: no quota"}
	case u.Disk.Quota == cpu.Unlimited:
		u.decision = decision{u.limit.Quota, KindRestore, "it has no CPUs of its own any more"}
	}
}

// lifted says whether a container of the pod has no quota because of us.
func (p *podCandidates) lifted() bool {
	for _, c := range p.containers {
		if c.limit.Limited() && c.quota == cpu.Unlimited {
			return true
		}
	}
	return false
}

// bound is the ceiling of a group that is bound to some CPUs.
func (g Group) bound(ceiling float64) float64 {
	if g.CPUs > 0 {
		return min(ceiling, float64(g.CPUs))
	}
	return ceiling
}

// most is the largest quota that may be written for a change to this one.
func (u *candidate) most(to time.Duration) time.Duration { return max(to, capFor(u.limit, u.Strategy)) }
