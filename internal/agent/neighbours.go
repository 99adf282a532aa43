package agent

import (
	"cmp"
	"fmt"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/preempt"
	"plimsoll/internal/report"
	"plimsoll/internal/risk"
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
		return g.Group
	}
	return nil
}

// Outranked says whether the quota of a group has a reason of a higher priority than suppression: the group is paused,
// its owner is about to resize it, or it has exclusive CPUs.
func (a services) Outranked(now time.Time, group string) bool {
	_, _, paused := a.pause(group, now)
	return paused || a.resizes.Paused(group, now) || a.share(group).Unlimited
}

func (a services) Topology() (on cpu.Topology, taken string, err error) {
	if a.cpus.Topology == nil || a.cpus.Rules.Policy != strategy.ReserveNone || a.cpus.Active() {
		return on, "containers may have exclusive CPUs", nil
	}
	if a.cpus.Owner != nil {
		a.Outside(func() { taken = a.cpus.Owner() })
	}
	if taken != "" {
		return on, taken, nil
	}
	on, err = a.cpus.Balanced()
	return on, "", err
}

func (a services) Saw(key plan.Key, held plan.Value, event ledger.Event) {
	a.noteSight(key, held, event)
}

func (a services) Due(now time.Time, group string) {
	if g := a.at(group); g != nil {
		g.Stale(now)
	}
}

func (a services) Overrode(group string) {
	a.Foreign(group, group+": another program has set its CPUs; they are left alone")
}

func (a services) Adopt(id workload.ID, knob plan.Knob, held, base plan.Value) {
	a.unjournaled = append(a.unjournaled, func() error { return a.Writer.Adopt(id, knob, held, base) })
}

func (a services) Forget(id workload.ID, knob plan.Knob) {
	a.unjournaled = append(a.unjournaled, func() error { return a.Writer.Forget(id, knob) })
}

// inJournal makes a change of the journal, except in a dry run.
func (a *Agent) inJournal(change func() error) {
	if a.DryRun {
		return
	}
	if err := change(); err != nil {
		a.Log.Error("journal", "error", err)
	}
}

// Reserve sets new rules for exclusive CPUs.
func (a *Agent) Reserve(rules strategy.Reserve) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpus.Reserve(rules)
	a.wake()
}

// measureRisk sizes the bursts for the load line, once a minute.
func (a *Agent) measureRisk(now time.Time) {
	switch target := a.Strategy.LoadLinePercent; {
	case target == 0:
		a.risk.Off("")
	case !a.subscription.active || a.Uncounted != "":
		why := cmp.Or(a.subscription.why, a.Uncounted)
		a.risk.Off(fmt.Sprintf(report.ProblemLoadLine, "the kernel does not count the use of periods: "+why))
	case a.risk.Due(now):
		var groups []risk.Group
		for id, g := range a.groups {
			// Without a limit there is no burst, though suppression may have set a quota.
			if g.Level == observe.LevelContainer && g.Disk.Limited() && g.limit.Limited() {
				burst, raise := policy.Requested(g.Strategy, a.Rules)
				groups = append(groups, risk.Group{ID: id, Limit: g.limit.Quota, Bandwidth: g.Disk, Since: g.Since,
					Burst: burst, Raise: raise})
			}
		}
		busy, err := a.Host.Busy()
		a.risk.Measure(now, target, groups, busy, err, a.record.Node().CPUs)
	}
}

// otherBursts requests new decisions on all bursts.
func (a *Agent) otherBursts() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reader.DueAll()
	a.wake()
}
