package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// note is something that happened to a file of a group's bandwidth, and is said once.
type note struct {
	plan.Key
	event  ledger.Event
	found  plan.Value
	base   plan.Value // the baseline from now on
	undone bool       // a refill may have undone the owner's write
}

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
	g.late, g.quotaOurs, g.burstOurs = q.Due(), q.Ours(), b.Ours()
}

func (a *Agent) seeFile(now time.Time, id workload.ID, knob plan.Knob, s ledger.Sight) (e ledger.Entry, resized bool) {
	key := plan.Key{ID: id, Knob: knob}
	event := a.ledger.See(now, key, s)
	e, _ = a.ledger.Entry(key)
	if event != ledger.None {
		a.notes = append(a.notes, note{key, event, s.Held, e.Baseline, e.Undone()})
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
	for _, g := range append(p.Containers[:len(p.Containers):len(p.Containers)], p.Group) {
		if e, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Quota}); e.State == ledger.Lost {
			return true
		}
	}
	return false
}

// note says what happened to files, and keeps the journal true to it. It is called before any write: what is no longer ours
// leaves the journal, and a write claims it anew.
func (a *Agent) note() []note {
	notes := a.notes
	a.notes = nil
	for _, n := range notes {
		a.noteOne(n)
	}
	return notes
}

func (a *Agent) noteOne(n note) {
	if a.priority.owns(n.ID, n.Knob) {
		return // not another program's
	}
	log := a.Log.With("cgroup", n.Path, "knob", n.Knob, "found", n.found, "limit", n.base)
	key := n.Path + " " + string(n.Knob)
	delete(a.account.problems, key)
	switch n.event {
	case ledger.Resized:
		log.Log(context.Background(), a.newsOfResize(n), "resized by its owner: this is the limit now")
		a.forget(n.ID, n.Knob)
	case ledger.Rebased:
		log.Info("the declared limit changed")
		if err := a.Writer.Rebase(n.ID, n.Knob, n.base); err != nil {
			log.Error("journal", "error", err)
		}
	case ledger.Reset:
		log.Info("put back by its owner: applied again after a while")
	case ledger.Overrode:
		log.Warn("another program wrote it: left alone")
		a.account.problems[key] = fmt.Sprintf("%s: another program set the %s to %s; it is left alone (limit %s)", n.Path, n.Knob, n.found, n.base)
		a.forget(n.ID, n.Knob)
		if a.Foreign != nil {
			a.Foreign(n.Path, a.account.problems[key])
		}
	case ledger.Deviation:
		log.Warn("not the declared limit: left alone", "hint", "plimsoll restore --to-spec")
		a.account.problems[key] = fmt.Sprintf("%s: %s is %s, declared is %s; hint: plimsoll restore --to-spec", n.Path, n.Knob, n.found, n.base)
	case ledger.WasLost:
		a.sayLost(n)
	}
	if g := a.groups[n.ID]; g != nil {
		knobOf(g, n.Knob).Problem = a.account.problems[key]
	}
}

// sayLost says that a declared limit is not in force. It is written in its owner's place.
func (a *Agent) sayLost(n note) {
	why := "the kernel refused its owner's write, or its owner did not write it"
	if n.undone {
		why = "the kernel may have undone its owner's write in a refill"
		a.account.writes.Undone++
	}
	a.account.problems[n.Path+" "+string(n.Knob)] = fmt.Sprintf("%s: the declared %s is %s, and the file holds %s: %s; it is written in its owner's place",
		n.Path, n.Knob, n.base, n.found, why)
	a.Log.Warn("a declared limit is not in force: it is written in its owner's place", "cgroup", n.Path, "knob", n.Knob, "held", n.found,
		"declared", n.base, "why", why)
}

// newsOfResize: that a new container gets its limit is no news.
func (a *Agent) newsOfResize(n note) slog.Level {
	if g := a.groups[n.ID]; g == nil || !g.status.Limited() || g.status.Limit == 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
