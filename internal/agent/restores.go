package agent

import (
	"fmt"
	"time"

	"plimsoll/internal/exclusive"
	"plimsoll/internal/journal"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// leave restores our values in groups that are gone or no longer managed, and those of a former agent in groups that
// this one does not manage. There are no more decisions on such groups: a refused restore stays in the ledger, and is
// retried.
func (a *Agent) leave(now time.Time, gone []*observe.Group) {
	a.record.Results(a.Writer.RestoreAgain())
	a.retryRestores(now)
	left := map[workload.ID]bool{}
	for _, g := range gone {
		left[g.ID] = true
		a.record.Drop(g.ID)
		a.ledger.Drop(g.ID, plan.Quota, plan.Burst)
	}
	if len(left) > 0 {
		a.putBackIn(now, func(e journal.Entry) bool { return left[e.ID] && !exclusive.OfCPUs(e.Knob) })
	}
	if a.adopted != nil && a.failed == nil {
		a.putBackIn(now, func(e journal.Entry) bool { return a.adopted[e.ID] && a.groups[e.ID] == nil })
		for id := range a.adopted {
			if a.groups[id] == nil {
				a.ledger.Drop(id, plan.Quota)
			}
		}
		a.adopted = nil
	}
}

// putBackIn restores the entries of the journal that of selects.
func (a *Agent) putBackIn(now time.Time, of func(journal.Entry) bool) {
	results := a.Writer.TryRestore(of)
	a.record.Results(results)
	for _, r := range results {
		key := r.Change.Key()
		if r.Outcome != plan.Refused {
			a.forgetPending(key)
			a.ledger.Drop(key.ID, key.Knob)
			continue
		}
		a.retryLater(now, r)
	}
}

// retryLater remembers a restore that the kernel has refused.
func (a *Agent) retryLater(now time.Time, r plan.Result) {
	key := r.Change.Key()
	if !a.pending[key] {
		a.pending[key] = true
		a.ledger.Adopt(key, r.Change.To, r.Change.From)
		a.Log.Warn("could not restore a file; retrying", "cgroup", key.Path, "knob", key.Knob, "to", r.Change.To,
			"error", r.Err)
	}
	a.ledger.Learn(now, []plan.Result{r})
	problem := fmt.Sprintf(report.ProblemNotRestored, key.Path, key.Knob, r.Change.To, r.Err)
	a.record.Problem(pendingRestore(key), problem)
}

func (a *Agent) forgetPending(key plan.Key) {
	delete(a.pending, key)
	a.record.Problem(pendingRestore(key), "")
}

func pendingRestore(key plan.Key) string { return key.Path + " pending restore of " + string(key.Knob) }

// retryRestores retries refused restores, except in files that a decider manages again. Bandwidth is always decided on
// where the group is managed; any other file may be restored, or intended to hold another value.
func (a *Agent) retryRestores(now time.Time) {
	due := false
	for key := range a.pending {
		e, _ := a.ledger.Entry(key)
		idle, _ := a.ledger.Entry(plan.Key{ID: key.ID, Knob: plan.Idle})
		if key.Knob == plan.Weight && idle.Ours() { // restored with cpu.idle, which locks it
			a.forgetPending(key)
			a.ledger.Drop(key.ID, key.Knob)
		}
		if key.Knob.OfBandwidth() && a.groups[key.ID] != nil || e.Intended != "" && e.Intended != e.Baseline {
			a.forgetPending(key)
		}
		due = due || mayRetry(e, now)
	}
	if len(a.pending) == 0 || !due { // the whole journal is looked at
		return
	}
	left := map[plan.Key]bool{}
	a.putBackIn(now, func(e journal.Entry) bool {
		if !a.pending[e.Key()] {
			return false
		}
		left[e.Key()] = true
		known, _ := a.ledger.Entry(e.Key())
		return mayRetry(known, now)
	})
	for key := range a.pending {
		if !left[key] { // its decider has restored it
			a.forgetPending(key)
			a.ledger.Drop(key.ID, key.Knob)
		}
	}
}

// mayRetry says whether no refused write of a file makes the next one wait.
func mayRetry(e ledger.Entry, now time.Time) bool { return e.Retry.Ready(now) && e.Return.Ready(now) }

// putBack restores everything while the kill switch is on, and reads the files afterwards. The results show refusals.
func (a *Agent) putBack() []plan.Result {
	a.scheduler.End(a.Clock())
	begin := a.Clock()
	results := a.Writer.Restore(nil, false)
	a.record.Results(results)
	a.learn(begin, results)
	a.cpus.Again()
	a.cpus.Unshielded(results)
	a.tick(a.Clock())              // writes nothing, and updates the status
	_ = a.record.Restored(results) // logs them
	return results
}

// stop restores everything at the end of Run, except what the next agent takes over.
func (a *Agent) stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true // the control socket and the container runtime may still request turns
	a.Writer.SetHold(true)
	a.scheduler.End(a.Clock())
	var only func(journal.Entry) bool
	if a.Successor != nil && a.Successor() {
		a.Log.Info("another agent takes over: bursts stay")
		only = func(e journal.Entry) bool { return !passes(e) }
	}
	results := append(a.Writer.Restore(only, false), a.Writer.Unshield()...)
	a.record.Results(results)
	return a.record.Restored(results)
}
