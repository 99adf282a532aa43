package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/preempt"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// services implements what colocation and exclusive CPUs need of the agent.
type services struct {
	*Agent
	*preempt.Mutex
}

// Bandwidth is the group of a quota or burst file, if the agent manages that group; else nil.
func (a services) Bandwidth(key plan.Key) *observe.Group {
	if g := a.groups[key.ID]; key.Knob.OfBandwidth() && g != nil && g.Disk.Period > 0 {
		return g.Group.Group
	}
	return nil
}

// Outranked says whether the quota of a group has a reason of a higher priority than suppression: the group is paused,
// its owner is about to resize it, or it has exclusive CPUs.
func (a services) Outranked(now time.Time, group string) bool {
	return a.Pauses.Paused(group, now) || a.resizes.open(group, now) || a.share(group).Unlimited
}

func (a services) Topology() (on cpu.Topology, free bool, err error) {
	if a.cpus.Topology == nil || a.cpus.Rules.Policy != strategy.ReserveNone || a.cpus.Active() {
		return on, false, nil
	}
	on, err = a.cpus.Topology()
	return on, true, err
}

func (a services) Saw(key plan.Key, held plan.Value, event ledger.Event) {
	a.noteSight(key, held, event)
}

func (a services) Stale(now time.Time) { a.reader.StaleAll(now) }

func (a services) Claimed(key plan.Key) bool { return a.colocation.Claims(key) }

func (a services) Due(now time.Time, group string) {
	if g := a.at(group); g != nil {
		g.Stale(now)
	}
}

func (a services) Overrode(group string) {
	a.Foreign(group, group+": another program has set its CPUs; they are left alone")
}

func (a services) Groups() map[workload.ID]*observe.Group { return a.reader.Groups() }

func (a services) Adopt(id workload.ID, knob plan.Knob, held, base plan.Value) {
	if !a.DryRun {
		a.logJournal(a.Writer.Adopt(id, knob, held, base))
	}
}

func (a services) Forget(id workload.ID, knob plan.Knob) {
	if !a.DryRun {
		a.logJournal(a.Writer.Forget(id, knob))
	}
}

// Reserve sets new rules for exclusive CPUs.
func (a *Agent) Reserve(rules strategy.Reserve) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Reserve(rules)
	a.wake()
}

// regroup makes a turn read the groups' CPUs: a group was made or removed.
func (a *Agent) regroup() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Regroup()
}

// Recovered records the results of restoring what a previous agent left behind. It is called before the first turn.
// Only refused restores are left, which are retried.
func (a *Agent) Recovered(results []plan.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Unshielded(results)
}

// logJournal logs the error of a write to the journal.
func (a *Agent) logJournal(err error) {
	if err != nil {
		a.Log.Error("journal", "error", err)
	}
}
