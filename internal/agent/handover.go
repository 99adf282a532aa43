package agent

import (
	"context"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// passes says whether what is in a knob may stay for the next agent. A burst may: the kernel bounds what it hands
// out. A raised quota may not: nobody would lower it if the next agent did not come.
func passes(e journal.Entry) bool { return e.Knob == plan.Burst }

// Adopt takes over the bursts that another agent has left for this one, and puts the rest back. An agent that writes
// nothing cannot do that, and takes raised quotas over, too. It is called before the first turn, with the entries of the
// journal.
func (a *Agent) Adopt(entries []journal.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.DryRun {
		a.putBackIn(a.Clock(), func(e journal.Entry) bool { return !passes(e) })
		a.unshield()
	}
	a.adopted = map[workload.ID]bool{}
	for _, e := range entries {
		if passes(e) || a.DryRun && e.Knob == plan.Quota {
			a.ledger.Adopt(plan.Key{ID: e.ID, Knob: e.Knob}, e.Target(), a.written(e))
		}
		a.adopted[e.ID] = true
	}
	a.Log.Info("taken over from the agent before", "groups", len(a.adopted))
}

// written is which of the values of an entry stands in the file: the last one, or the one before where the kernel refused that.
func (a *Agent) written(e journal.Entry) plan.Value {
	if held, err := apply.Read(a.Tree, e.Path, e.Knob); err == nil && e.Ours(held) {
		return held
	}
	return e.Last
}

// releaseUnclaimed puts back what was taken over for groups that turn out to be nobody's to look after.
func (a *Agent) releaseUnclaimed(now time.Time) {
	if a.adopted == nil || a.failed != nil {
		return
	}
	for id := range a.adopted {
		if a.groups[id] != nil {
			delete(a.adopted, id)
		}
	}
	if len(a.adopted) > 0 {
		left := a.adopted
		a.putBackIn(now, func(e journal.Entry) bool { return left[e.ID] })
	}
	a.adopted = nil
}

// stop puts everything back at the end of Run, but for what the next agent takes over.
func (a *Agent) stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true // the control socket and the container runtime may ask for a turn yet
	a.Writer.SetHold(true)
	a.scheduler.End(a.Clock())
	var only func(journal.Entry) bool
	if a.Successor != nil && a.Successor() {
		a.Log.Info("another agent takes over: bursts stay")
		only = func(e journal.Entry) bool { return !passes(e) }
	}
	return a.putBackAll(only)
}

// Retire puts everything back, and writes nothing for the rest of this agent's life, or until Resume. The next agent
// knows nothing of it, as it does of a hold.
func (a *Agent) Retire(context.Context) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.retired = a.Clock()
	a.Writer.SetHold(true)
	a.Log.Warn("retired: nothing is written until it is stopped, or `plimsoll resume`")
	return a.putBack()
}

// held says whether nothing may be written.
func (a *Agent) held() bool { return a.ended || !a.retired.IsZero() || a.Switch.Held() }

// DryRunOptions are those of an agent that decides as this one would, and has nothing in common with it but who runs.
// Tree, Host, Writer and Log are the caller's to set.
func (a *Agent) DryRunOptions() Options {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.Options
	o.Tree, o.Host, o.Writer, o.Log = nil, nil, nil, nil
	o.Events, o.Successor, o.Foreign = nil, nil, nil
	o.Pauses, o.DryRun = a.Pauses.Copy(), true
	o.Reserving = a.cpus.DryRun()
	return o
}
