package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/record"
	"plimsoll/internal/workload"
)

// group is what the agent keeps of one group that it looks after.
type group struct {
	*record.Group
	suppressed bool           // it sends no throttle events
	late       time.Time      // when its owner's write of the limit counts as lost; zero: it is in force
	limit      cpu.Bandwidth  // its owner's
	counted    time.Duration  // the quota by which the kernel's programs count the use of its periods; 0: the one in force
	refill     *policy.Refill // the last one, as long as its effect is not known
	above      time.Duration  // used above the limit, as the kernel's programs had counted it at the last reading
}

// of is what the agent keeps of a group that was read.
func (a *Agent) of(g *observe.Group) *group {
	known := a.groups[g.ID]
	if known == nil {
		known = &group{Group: a.record.Group(g)}
		a.groups[g.ID] = known
	}
	return known
}

// at is the group of a path; nil: there is none.
func (a *Agent) at(path string) *group {
	if g := a.reader.At(path); g != nil {
		return a.groups[g.ID]
	}
	return nil
}

// ours says whether a value of ours is in the quota or the burst of a group, whatever for.
func (a *Agent) ours(id workload.ID) bool {
	quota, _ := a.ledger.Entry(plan.Key{ID: id, Knob: plan.Quota})
	burst, _ := a.ledger.Entry(plan.Key{ID: id, Knob: plan.Burst})
	return quota.Ours() || burst.Ours()
}

// attend has a group read as often, and its throttles reported, as decisions ask for.
func (a *Agent) attend(v policy.View) {
	g := a.groups[v.Cgroup]
	if g == nil {
		return
	}
	quota, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Quota})
	g.Attention = observe.Attention{Watched: v.Watched, Stable: v.Stable && g.late.IsZero(), Suppressed: v.SuppressEvents,
		Throttled: v.Window.Throttled > 0, Raised: quota.Ours() && quota.By == plan.ForBandwidth, Bounded: v.BudgetLeft != cpu.Unlimited}
	if !g.Stable {
		g.MarkDue()
	}
	a.suppressEvents(g, v.SuppressEvents)
	if v.Limit.Limited() {
		a.countBy(g, v.Limit.Quota)
	}
	if v.Window.Elapsed() > 0 && g.Looked {
		g.Above(a.aboveLimit(g, v))
		if !v.IsPod {
			a.colocation.Used(g.QOS.Rank(), v.Window.Used)
		}
	}
}

// see has the ledger compare what the files of a group hold with what is known, and tells the policy what it says.
func (a *Agent) see(now time.Time, g *group, to *policy.Group) {
	q, resized := a.seeFile(now, g, plan.Quota)
	b, _ := a.seeFile(now, g, plan.Burst)
	to.Limit.Period = g.Disk.Period
	to.Limit.Quota, _ = q.Baseline.Time() // they were times when they were written
	to.Limit.Burst, _ = b.Baseline.Time()
	to.QuotaBlocked, to.BurstBlocked, to.Resized = a.blocked(now, g, q), a.blocked(now, g, b), resized
	g.limit = to.Limit
	g.late = q.Due()
	g.QuotaOurs, g.BurstOurs = q.Ours() && q.By == plan.ForBandwidth, b.Ours() && b.By == plan.ForBandwidth
}

func (a *Agent) seeFile(now time.Time, g *group, knob plan.Knob) (e ledger.Entry, resized bool) {
	key, s := plan.Key{ID: g.ID, Knob: knob}, ledger.Bandwidth(g.Disk, g.Declared, knob)
	event := a.ledger.See(now, key, s)
	a.noteSight(key, s.Held, event)
	e, _ = a.ledger.Entry(key)
	return e, event == ledger.Resized || event == ledger.Rebased
}

// noteSight keeps what happened to a file for the notes.
func (a *Agent) noteSight(key plan.Key, found plan.Value, event ledger.Event) {
	if e, _ := a.ledger.Entry(key); event != ledger.None {
		a.notes = append(a.notes, record.Note{Key: key, Event: event, Found: found, Base: e.Baseline, Undone: e.Undone()})
	}
}

// blocked says why a file may not be written: nothing of ours is written before its owner has set the group up.
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

// lost says whether the limit of a pod or of a container in it is not in force, since its owner's write was lost.
func (a *Agent) lost(p policy.Pod) bool {
	groups := append(p.Containers[:len(p.Containers):len(p.Containers)], p.Group)
	for _, s := range p.Scopes {
		groups = append(groups, s.Group)
	}
	for _, g := range groups {
		if e, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Quota}); e.State == ledger.Lost {
			return true
		}
	}
	return false
}

// note says what happened to files, and keeps the journal true to it. It is called before any write: what is no longer ours
// leaves the journal, and a write claims it anew.
func (a *Agent) note() {
	notes := a.notes
	a.notes = nil
	for _, n := range notes {
		problem := a.record.Note(n)
		if n.Event == ledger.Overrode && a.Foreign != nil {
			a.Foreign(n.Path, problem)
		}
		if !a.DryRun {
			a.keepJournal(n)
		}
	}
}

func (a *Agent) keepJournal(n record.Note) {
	switch n.Event {
	case ledger.Resized, ledger.Overrode:
		a.sayJournal(a.Writer.Forget(n.ID, n.Knob))
	case ledger.Rebased:
		a.sayJournal(a.Writer.Rebase(n.ID, n.Knob, n.Base))
	}
}
