package agent

import (
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// A refill counts when its effect was seen (policy/effect.go). What is read for that is read after the write, so that a
// throttle is ended as soon as before.

// refilled takes the refills that the kernel took. A throttle that was foreseen and has begun since is answered by one.
func (a *Agent) refilled(begun time.Time, throttles []policy.Throttle, results []plan.Result) {
	for _, r := range results {
		g := a.groups[r.Change.Cgroup]
		if g == nil || !r.Change.Refill || r.Outcome != plan.Applied {
			continue
		}
		if g.refill != nil { // the period goes on, and so does the group
			a.effect(r.At, g, g.refill.Later(g.Reading.At, g.Reading.Counters))
		}
		t, _ := policy.Latest(throttles, r.Change.Cgroup.Inode)
		g.refill = &policy.Refill{Of: g.ID, Begun: begun, At: r.At, For: t, Before: g.Reading.Counters, CPUs: max(1, a.node.CPUs)}
		if counters, err := a.Tree.Stat(g.Path); err == nil {
			a.effect(r.At, g, g.refill.AtOnce(counters))
		}
		if g.refill != nil {
			a.subscription.unsure = append(a.subscription.unsure, g)
		}
	}
}

// judge judges the refills that are due.
func (a *Agent) judge(now time.Time) {
	a.subscription.unsure = slices.DeleteFunc(a.subscription.unsure, func(g *group) bool {
		if g.refill == nil || now.Before(g.refill.Due()) {
			return g.refill == nil
		}
		counters, err := a.reader.Counters(g.Group.Group, g.refill.Before.HasUsage)
		if err != nil { // it is gone
			g.refill = nil
			return true
		}
		a.effect(now, g, g.refill.Later(a.Clock(), counters))
		return true
	})
}

// effect books what became of a group's last refill.
func (a *Agent) effect(now time.Time, g *group, e policy.Effect) {
	if e == policy.Undecided {
		return
	}
	refill := g.refill
	g.refill = nil
	a.record.Effect(g.Group, refill, e)
	of, node := a.state.Refilled(now, refill, e)
	a.record.Trust(g.Group, of)
	a.record.Trust(nil, node)
}

// aboveLimit is what a group has used above its limit since the last look: in each of its periods, where the kernel's
// programs see them, and else in the mean, in which quiet periods make up for others.
func (a *Agent) aboveLimit(g *group, v policy.View) time.Duration {
	if !a.subscription.active || a.scheduler.InForce() || !g.Disk.Limited() {
		return v.AboveLimit
	}
	t, ok := a.Events.Totals(g.Inode)
	if !ok || t.Usage == 0 { // no period was seen
		return v.AboveLimit
	}
	more := t.Above - g.above
	if more < 0 { // it is watched anew
		more = t.Above
	}
	g.above = t.Above
	return more
}

// An owner's write of a quota that a refill may have undone is found in two ways: by what is declared (ledger.WasLost), and
// by what inotify reports of the file (apply/undone.go). The latter is only reported, and what stands is left alone.

// undone takes what inotify reported. Where the limit is declared that decides: it may be the same value that its owner wrote
// again, and else the two differ from then on.
func (a *Agent) undone(now time.Time) {
	if a.Undone == nil {
		return
	}
	found, err := a.Undone()
	if err != nil && !a.blind {
		a.blind = true
		a.Log.Warn("not all owners' writes that a refill undoes are seen", "error", err)
	}
	for _, u := range found {
		g := a.groups[u.ID]
		if g == nil {
			continue
		}
		g.Stale(now)
		held, err := u.Held.Time()
		if err != nil || g.Declared != nil {
			continue
		}
		a.record.Undone(g.Group, held)
	}
}

// expectRefills names the groups that may be refilled, so that writes to their quotas are seen before the first refill.
func (a *Agent) expectRefills(pods []workload.Pod) {
	if a.Refillable == nil || !a.Rules.Refill {
		return
	}
	var undeclared, declared []workload.ID
	add := func(id workload.ID, d *workload.Declared) {
		switch {
		case id.Inode == 0: // a container without a pod
		case d == nil:
			undeclared = append(undeclared, id)
		default:
			declared = append(declared, id)
		}
	}
	for _, p := range pods {
		passive := true
		for _, c := range p.Containers {
			if c.Strategy.Policy != strategy.None {
				passive = false
				add(c.ID, c.Declared)
			}
		}
		if !passive {
			add(p.ID, p.Declared)
		}
	}
	a.Refillable(undeclared, declared)
}
