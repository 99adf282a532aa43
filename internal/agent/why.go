package agent

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/policy"
)

// why is the reason for what stands in a group's files, in words that say which rule it was: the policy is not told why a
// group is to stay at its limit.
func (a *Agent) why(g *group, decided string, now time.Time) string {
	switch {
	case g == nil:
	case strings.HasSuffix(decided, policy.WhyAtLimit) && g.Paused:
		return strings.TrimSuffix(decided, policy.WhyAtLimit) + a.whyAtLimit(g, now)
	case decided == "" && !g.Class.Burstable():
		return fmt.Sprintf("class %s: the limit is left alone", g.Class)
	}
	return decided
}

// whyAtLimit says who keeps a group at its limit.
func (a *Agent) whyAtLimit(g *group, now time.Time) string {
	switch {
	case a.Pauses.paused(g.Path, now) && a.Pauses.released[g.Path]:
		return "released: held at the limit for another writer"
	case a.Pauses.paused(g.Path, now):
		return "paused: held at the limit"
	case a.scheduler.InForce():
		return "held at the limit: the scheduler of mechanism schedExt runs all tasks"
	case a.overruled.by != "":
		return fmt.Sprintf("held at the limit: the sched_ext scheduler %s runs all tasks", a.overruled.by)
	case a.resizes.open(g.Path, now):
		return "held at the limit: the container runtime is about to resize it"
	case a.colocation.Suppresses(g.Path):
		return "suppressed: offline work is held at its limit"
	}
	return "held at the limit: a resize of its pod is under way"
}
