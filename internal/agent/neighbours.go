package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// asked is what colocation and exclusive CPUs ask of the agent.
type asked struct{ *Agent }

// Bandwidth is the group whose bandwidth a file is one of, if the group is looked after.
func (a asked) Bandwidth(key plan.Key) *observe.Group {
	if g := a.groups[key.ID]; key.Knob.OfBandwidth() && g != nil && g.Disk.Period > 0 {
		return g.Group.Group
	}
	return nil
}

// Outranked says whether something that goes before suppression is for the quota of a group: it is paused, its owner is about to
// resize it, or it has CPUs of its own.
func (a asked) Outranked(now time.Time, group string) bool {
	return a.Pauses.Paused(group, now) || a.resizes.open(group, now) || a.share(group).Unlimited
}

func (a asked) Topology() (on cpu.Topology, free bool, err error) {
	if a.cpus.Topology == nil || a.cpus.Rules.Policy != strategy.ReserveNone || a.cpus.Active() {
		return on, false, nil
	}
	on, err = a.cpus.Topology()
	return on, true, err
}

func (a asked) Saw(key plan.Key, held plan.Value, event ledger.Event) { a.noteSight(key, held, event) }

func (a asked) Stale(now time.Time) { a.reader.StaleAll(now) }

func (a asked) Claimed(key plan.Key) bool { return a.colocation.Claims(key) }

func (a asked) Due(now time.Time, group string) {
	if g := a.at(group); g != nil {
		g.Stale(now)
	}
}

func (a asked) Overrode(group string) {
	if a.Foreign != nil {
		a.Foreign(group, group+": another program has set its CPUs; they are left alone")
	}
}

func (a asked) Groups() map[workload.ID]*observe.Group { return a.reader.Groups() }

func (a asked) Adopt(id workload.ID, knob plan.Knob, held, base plan.Value) {
	if !a.DryRun {
		a.sayJournal(a.Writer.Adopt(id, knob, held, base))
	}
}

func (a asked) Forget(id workload.ID, knob plan.Knob) {
	if !a.DryRun {
		a.sayJournal(a.Writer.Forget(id, knob))
	}
}

// Reserve takes new rules for the CPUs that containers may have of their own.
func (a *Agent) Reserve(rules strategy.Reserve) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Reserve(rules)
	a.wake()
}

// regroup has the groups' CPUs looked at: a group was made, or is gone.
func (a *Agent) regroup() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Regroup()
}

// Recovered takes note of what became of all that an agent before this one had left behind. It is called before the first
// turn. Nothing is left but what was refused, which is tried again.
func (a *Agent) Recovered(results []plan.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Unshielded(results)
}

// sayJournal logs what became of a journal's step.
func (a *Agent) sayJournal(err error) {
	if err != nil {
		a.Log.Error("journal", "error", err)
	}
}
