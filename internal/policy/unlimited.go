package policy

import (
	"slices"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// Removing the quota of a group that has exclusive CPUs.
//
// A group with exclusive CPUs takes no CPU time from others when it uses them, and a quota would throttle it on CPUs
// that no other group may use. So its quota is removed, and the quota of its pod as well, which would throttle it too.
// A group that is bound to CPUs that are not exclusive keeps its quota, and no raise exceeds the number of these CPUs.

// removeQuota decides for a candidate that has exclusive CPUs, or has them no longer.
func (u *candidate) removeQuota() {
	switch {
	case u.QuotaBlocked.LeftAlone() || !u.limit.Limited():
	case u.Unlimited && !u.Paused && u.QuotaBlocked != plan.Waiting:
		u.decision = decision{cpu.Unlimited, KindReserve, "it has CPUs of its own: no quota"}
	case u.Disk.Quota == cpu.Unlimited:
		u.decision = decision{u.limit.Quota, KindRestore, "it has no CPUs of its own any more"}
	}
}

// unlimited says whether we removed the quota of a container of the pod.
func (p *podCandidates) unlimited() bool {
	return slices.ContainsFunc(p.containers, func(c *candidate) bool {
		return c.limit.Limited() && c.quota == cpu.Unlimited
	})
}
