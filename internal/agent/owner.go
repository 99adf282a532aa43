package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/record"
	"plimsoll/internal/workload"
)

// see has the ledger compare what the files of a group hold with what is known, and tells the policy what it says.
func (a *Agent) see(now time.Time, g *group, to *policy.Group) {
	quota := ledger.Sight{Held: plan.Time(g.Disk.Quota)}
	if d := g.Declared; d != nil {
		quota.Declared = plan.Time(d.Bandwidth.Over(g.Disk.Period))
		if d.Next != (cpu.Bandwidth{}) {
			quota.Next = plan.Time(d.Next.Over(g.Disk.Period))
		}
	}
	g.late = time.Time{}
	q, resized := a.seeFile(now, g.ID, plan.Quota, quota)
	b, _ := a.seeFile(now, g.ID, plan.Burst, ledger.Sight{Held: plan.Time(g.Disk.Burst)})
	to.Limit.Period = g.Disk.Period
	to.Limit.Quota, _ = q.Baseline.Time() // they were times when they were written
	to.Limit.Burst, _ = b.Baseline.Time()
	to.QuotaBlocked, to.BurstBlocked, to.Resized = a.blocked(now, g, q), a.blocked(now, g, b), resized
	g.limit = to.Limit
	g.late, g.QuotaOurs, g.BurstOurs = q.Due(), q.Ours(), b.Ours()
}

func (a *Agent) seeFile(now time.Time, id workload.ID, knob plan.Knob, s ledger.Sight) (e ledger.Entry, resized bool) {
	key := plan.Key{ID: id, Knob: knob}
	event := a.ledger.See(now, key, s)
	e, _ = a.ledger.Entry(key)
	if event != ledger.None {
		a.notes = append(a.notes, record.Note{Key: key, Event: event, Found: s.Held, Base: e.Baseline, Undone: e.Undone()})
	}
	return e, event == ledger.Resized || event == ledger.Rebased
}

// blocked says why a file may not be written: nothing of ours is written before its owner has set the group up.
func (a *Agent) blocked(now time.Time, g *group, e ledger.Entry) plan.Blocked {
	why := e.Blocked(now)
	if why == plan.Free && !g.Ready && !e.Ours() {
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
func (a *Agent) note() []record.Note {
	notes := a.notes
	a.notes = nil
	for _, n := range notes {
		if a.priority.owns(n.ID, n.Knob) {
			continue // not another program's
		}
		problem := a.record.Note(n)
		switch n.Event {
		case ledger.Resized:
			a.sayJournal(a.Writer.Forget(n.ID, n.Knob))
		case ledger.Rebased:
			a.sayJournal(a.Writer.Rebase(n.ID, n.Knob, n.Base))
		case ledger.Overrode:
			a.sayJournal(a.Writer.Forget(n.ID, n.Knob))
			if a.Foreign != nil {
				a.Foreign(n.Path, problem)
			}
		}
	}
	return notes
}
