package agent

import (
	"time"

	"plimsoll/internal/plan"
)

// repair writes limits that their owner has declared and left unwritten, in its place. What is written is the owner's: it is
// seen in the next turn as a resize.
func (a *Agent) repair(now time.Time, repairs []plan.Change) []plan.Result {
	if a.DryRun || a.held() {
		return nil
	}
	var results []plan.Result
	for _, c := range repairs {
		r := a.Writer.RestoreTo(c.Cgroup, c.Knob, c.To, c.Why)
		a.Log.Warn("a stale limit", "cgroup", c.Cgroup.Path, "knob", c.Knob, "from", c.From, "to", c.To, "outcome", r.Outcome, "error", r.Err, "why", c.Why)
		if g := a.groups[c.Cgroup]; g != nil {
			g.stale(now)
		}
		results = append(results, r)
	}
	a.account.book(results)
	return results
}
