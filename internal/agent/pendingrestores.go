package agent

import (
	"fmt"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// pendingRestores are the groups that are no longer looked after, and in which something of ours still stands: the
// kernel refused to have it put back. It is tried again, for no decision is made for such a group any more.
type pendingRestores struct {
	groups map[workload.ID]bool
	at     time.Time // of the last try
}

// queueRestores puts back what stands of ours in groups that are no longer looked after.
func (a *Agent) queueRestores(now time.Time, of func(journal.Entry) bool) {
	before := a.pending.groups
	a.pending = pendingRestores{map[workload.ID]bool{}, now}
	for id := range before {
		a.record.Problem(pendingKey(id), "")
		if a.groups[id] != nil { // it is looked after again
			delete(before, id)
		}
	}
	results := a.Writer.Restore(func(e journal.Entry) bool { return of(e) || before[e.ID] && ofLeaver(e) }, false)
	a.record.Results(results)
	for _, r := range results {
		if r.Outcome != plan.Refused {
			continue
		}
		id := r.Change.Cgroup
		a.pending.groups[id] = true
		a.record.Problem(pendingKey(id), fmt.Sprintf("%s: no longer looked after, and its %s is not put back to %s: %s", id.Path, r.Change.Knob,
			r.Change.To, r.Err))
		if !before[id] {
			a.Log.Warn("not put back: tried again", "cgroup", id.Path, "knob", r.Change.Knob, "to", r.Change.To, "error", r.Err)
		}
	}
}

func pendingKey(id workload.ID) string { return id.Path + " pending restore" }

// retryRestores tries again what could not be put back.
func (a *Agent) retryRestores(now time.Time) {
	if len(a.pending.groups) > 0 && now.Sub(a.pending.at) >= observe.IdleEvery {
		a.queueRestores(now, func(journal.Entry) bool { return false })
	}
}
