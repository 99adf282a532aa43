package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/outcome"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// group is the agent's state of one group that it manages.
type group struct {
	*outcome.Account
	suppressed bool           // its throttle events are suppressed
	late       time.Time      // when its owner's write of the limit counts as lost; zero: the limit is in force
	limit      cpu.Bandwidth  // its owner's
	counted    time.Duration  // the quota by which the use of its periods is counted; 0: the one in force
	refill     *policy.Refill // the last one, while its effect is not known
	sights     ledger.Sights
	above      time.Duration // the eBPF count of use above the limit at the last reading
}

// at is the group with a path; nil: there is none.
func (a *Agent) at(path string) *group {
	if g := a.reader.At(path); g != nil {
		return a.groups[g.ID]
	}
	return nil
}

// ours says whether the quota or burst file of a group holds a value of ours, of any decider.
func (a *Agent) ours(id workload.ID) bool {
	quota, _ := a.ledger.Entry(plan.Key{ID: id, Knob: plan.Quota})
	burst, _ := a.ledger.Entry(plan.Key{ID: id, Knob: plan.Burst})
	return quota.Ours() || burst.Ours()
}

// attend sets how often a group is read and whether its throttles are reported, as the decisions require.
func (a *Agent) attend(g *group, v policy.View) {
	quota, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Quota})
	g.Attention = observe.Attention{Watched: v.Watched, Suppressed: v.SuppressEvents, Throttled: v.Window.Throttled > 0,
		Stable: v.Stable && g.late.IsZero(), Bounded: v.BudgetLeft != cpu.Unlimited,
		Raised: quota.Ours() && quota.By == plan.ForBandwidth, OwnCPUs: a.share(g.Path).Unlimited}
	if !g.Stable {
		g.MarkDue()
	}
	if !a.subscription.active || a.subscription.pods[g.Inode] == nil {
		return
	}
	if g.suppressed != v.SuppressEvents {
		a.suppressEvents(g, v.SuppressEvents)
	}
	if v.Limit.Limited() && g.counted != v.Limit.Quota {
		a.countBy(g, v.Limit.Quota)
	}
}

// seeGroup shows the ledger the quota and burst of a group that was read, and makes the policy's input of its answers.
// It says whether the limit is not in force because its owner's write was lost.
func (a *Agent) seeGroup(now time.Time, read *observe.Group) (seen policy.Group, lost bool) {
	g, share := a.groups[read.ID], a.share(read.Path)
	if g == nil {
		g = &group{Account: a.record.Account(read)}
		a.groups[read.ID] = g
	}
	q, resized := a.seeFile(now, g, plan.Quota)
	b, _ := a.seeFile(now, g, plan.Burst)
	g.limit.Period = g.Disk.Period
	g.limit.Quota, _ = q.Baseline.Time() // both were made by plan.Time
	g.limit.Burst, _ = b.Baseline.Time()
	g.late, g.Retry = q.Due(), time.Time{}
	for _, wait := range []plan.Backoff{q.Retry, q.Return, b.Retry, b.Return} {
		if !wait.Ready(now) {
			g.Retry = policy.Sooner(g.Retry, wait.Until())
		}
	}
	g.QuotaOurs, g.BurstOurs = q.Ours() && q.By == plan.ForBandwidth, b.Ours() && b.By == plan.ForBandwidth
	seen = policy.Group{ID: g.ID, Unlimited: share.Unlimited, CPUs: len(share.CPUs), Strategy: g.Strategy,
		Request: g.Request, Class: g.Class, Deprioritized: a.colocation.Deprioritized(read), Paused: g.WhyPaused,
		Disk: g.Disk, Ready: g.Ready, Quiet: g.Quiet, Reading: g.Reading, Looked: g.Looked, Starting: g.Starts,
		Sandbox: g.Sandbox, Limit: g.limit, Resized: resized, QuotaBlocked: a.blocked(now, g, q),
		BurstBlocked: a.blocked(now, g, b)}
	if g.Strategy.Receipts > 0 && a.subscription.active {
		t, ok := a.Events.Totals(g.Inode)
		seen.Lost, seen.LostKnown, seen.RequestsThrottled = t.Wall, ok && t.Begun > 0, t.Requests
	}
	return seen, q.State == ledger.Lost
}

func (a *Agent) seeFile(now time.Time, g *group, knob plan.Knob) (e ledger.Entry, resized bool) {
	key, s := plan.Key{ID: g.ID, Knob: knob}, g.sights.Of(g.Disk, g.Declared, knob)
	event := a.ledger.See(now, key, s)
	a.noteSight(key, s.InFile, event)
	e, _ = a.ledger.Entry(key)
	return e, event == ledger.Resized || event == ledger.Rebased || event == ledger.Scaled
}

// noteSight keeps an event of a file for note.
func (a *Agent) noteSight(key plan.Key, found plan.Value, event ledger.Event) {
	if event == ledger.None {
		return
	}
	e, _ := a.ledger.Entry(key)
	a.notes = append(a.notes, outcome.Note{Key: key, Event: event, Found: found, Base: e.Baseline, Undone: e.Undone()})
}

// blocked says why a file may not be written. A group without tasks is not written: its owner is still setting it up.
func (a *Agent) blocked(now time.Time, g *group, e ledger.Entry) plan.Blocked {
	why := e.Blocked(now)
	switch {
	case e.By != plan.ForBandwidth:
		return plan.Suppressed
	case why == plan.Free && !g.Ready && !e.Ours():
		return plan.NoTask
	}
	return why
}

// note records what happened to files, and keeps the journal in step. It is called before any write: values that are no
// longer ours leave the journal, and a write claims the file anew.
func (a *Agent) note() {
	for _, n := range a.notes {
		problem := a.record.Note(n)
		if n.Event == ledger.Overrode {
			a.Foreign(n.Path, problem)
		}
		switch n.Event {
		case ledger.Resized, ledger.Overrode:
			a.inJournal(func() error { return a.Writer.Forget(n.ID, n.Knob) })
		case ledger.Rebased:
			a.inJournal(func() error { return a.Writer.Rebase(n.ID, n.Knob, n.Base) })
		case ledger.CameBack:
			a.inJournal(func() error { return a.Writer.Adopt(n.ID, n.Knob, n.Found, n.Base) })
		}
	}
	for _, change := range a.unjournaled {
		a.inJournal(change)
	}
	a.notes, a.unjournaled = nil, nil
}
