package agent

import (
	"time"

	"plimsoll/internal/policy"
)

// aboveLimit is what a group has used above its limit since the last look: in each of its periods, where the kernel's
// programs see them, and else in the mean, in which quiet periods make up for others.
func (a *Agent) aboveLimit(g *group, v policy.View) time.Duration {
	if !a.subscription.active || a.scheduler.InForce() || !g.Disk.Limited() {
		return v.AboveLimit
	}
	t, ok := a.Events.Totals(g.Inode)
	if !ok || t.Usage == 0 { // no period was seen
		return v.AboveLimit
	}
	more := t.Above - g.above
	if more < 0 { // it is watched anew
		more = t.Above
	}
	g.above = t.Above
	return more
}
