package agent

import (
	"context"

	"plimsoll/internal/apply"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// passes says whether a value may stay in place for the next agent. A burst may: the kernel bounds what it grants. A
// raised quota may not: no program would lower it if the next agent failed to start.
func passes(e journal.Entry) bool { return e.Knob == plan.Burst }

// Adopt takes over the bursts that another agent has left for this one, and restores the rest. A dry run cannot
// restore, and takes over raised quotas as well. It is called before the first turn, with the entries of the journal.
func (a *Agent) Adopt(entries []journal.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.DryRun {
		a.putBackIn(a.Clock(), func(e journal.Entry) bool { return !passes(e) })
		results := a.Writer.Unshield() // what the previous agent left
		a.record.Results(results)
		a.cpus.Unshielded(results)
	}
	a.remember(entries)
	for _, e := range entries {
		if passes(e) || a.DryRun && e.Knob == plan.Quota {
			e = apply.Present(a.Tree, e)
			a.ledger.Adopt(e.Key(), e.Target(), a.written(e))
		}
	}
	a.Log.Info("took over values of the previous agent", "groups", len(a.adopted))
}

// Recovered takes note of what a previous agent left behind: the entries that its journal had, and the results of
// restoring them, the newest last. It is called before the first turn. Only refused restores are left: a limit is ours
// until it is restored.
func (a *Agent) Recovered(entries []journal.Entry, results []plan.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := map[plan.Key]plan.Result{}
	for _, r := range results {
		last[r.Change.Key()] = r
	}
	for _, r := range last {
		if r.Outcome == plan.Refused {
			a.retryLater(a.Clock(), r)
		}
	}
	a.remember(entries)
	a.cpus.Unshielded(results)
}

// remember has the ledger know the quotas that a previous agent knew for their owners'. Where the last write of a
// burst, or its restore, undid that of an owner (apply/undone.go), the file still holds such a quota while another one
// is declared. That one is late then, and the one in the file is not another program's.
func (a *Agent) remember(entries []journal.Entry) {
	a.adopted = map[workload.ID]bool{}
	for _, e := range entries {
		a.adopted[e.ID] = true
		quota := plan.Key{ID: e.ID, Knob: plan.Quota}
		if _, pending := a.ledger.Entry(quota); e.Quota != "" && !pending {
			e = apply.Present(a.Tree, e)
			a.ledger.Adopt(quota, e.Quota, e.Quota)
		}
	}
}

// written is the value of an entry that is in the file: the last one, or the one before if the kernel refused that.
func (a *Agent) written(e journal.Entry) plan.Value {
	if held, err := apply.Read(a.Tree, e.Path, e.Knob); err == nil && e.Ours(held) {
		return held
	}
	return e.Last
}

// Retire restores everything, and writes nothing until this agent ends or Resume is called. Unlike a hold, it does not
// affect the next agent.
func (a *Agent) Retire(ctx context.Context) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.retired = a.Clock()
	a.Writer.SetHold(true)
	a.Log.Warn("retired: nothing is written until it is stopped, or `plimsoll resume`")
	return a.putBack(), nil
}

// held says whether nothing may be written.
func (a *Agent) held() bool { return a.ended || !a.retired.IsZero() || a.Switch.Held() }

// DryRunOptions returns options for an agent that decides as this one would, and takes or reports no event in place of
// this one. Both share the discovery, the switch, the tasks and the topology. The caller sets Tree, Host, Schedulers
// and Log.
func (a *Agent) DryRunOptions() Options {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.Options
	o.Tree, o.Host, o.Schedulers, o.Writer, o.Log = nil, nil, nil, nil, nil
	o.Events, o.Undone, o.Refillable, o.Foreign, o.Bounded = nil, nil, nil, nil, nil
	o.Successor, o.Beat = nil, nil
	o.Pauses, o.DryRun = a.Pauses.Copy(), true
	o.Reserving = a.cpus.DryRun()
	return o
}

// KeptReceipts is what is to be kept of the experiments for the next agent. The caller writes it, without the lock.
func (a *Agent) KeptReceipts() policy.KeptReceipts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Kept(a.mu.Yield)
}

// ResumeReceipts goes on with the experiments of the agent before. It is called before the first turn. After an error
// they begin anew.
func (a *Agent) ResumeReceipts(k policy.KeptReceipts) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Resume(k, a.Clock())
}
