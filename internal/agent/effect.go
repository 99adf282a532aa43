package agent

import (
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
)

// A refill counts once its effect is known (policy/effect.go). The counters for that are read after the write, so that
// they do not delay it.

// refilled records the successful refills.
func (a *Agent) refilled(throttles []bandwidth.Throttle, results []plan.Result) {
	for _, r := range results {
		g := a.groups[r.Change.Cgroup]
		if g == nil || !r.Change.Refill || r.Outcome != plan.Applied {
			continue
		}
		if g.refill != nil { // a further refill in the same period: judge the previous one
			a.effect(r.At, g, g.refill.Later(g.Reading.At, g.Reading.Counters))
		}
		t, _ := policy.Latest(throttles, r.Change.Cgroup.Inode)
		g.refill = &policy.Refill{Of: g.ID, At: r.At, For: t, Before: g.Reading.Counters, CPUs: max(1, a.node.CPUs)}
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
		counters, err := a.reader.Counters(g.Group, g.refill.Before.HasUsage)
		if err != nil { // it is gone
			g.refill = nil
			return true
		}
		a.effect(now, g, g.refill.Later(a.Clock(), counters))
		return true
	})
}

// effect records the effect of a group's last refill.
func (a *Agent) effect(now time.Time, g *group, e policy.Effect) {
	if e == policy.Undecided {
		return
	}
	refill := g.refill
	g.refill = nil
	a.record.Effect(g.Account, refill, e)
	of, node := a.state.Refilled(now, refill, e)
	a.record.Trust(g.Account, of)
	a.record.Trust(nil, node)
}

// aboveLimit is the CPU time that a group has used above its limit since the last reading: period by period where eBPF
// counts it, and else from the mean, in which quiet periods offset others.
func (a *Agent) aboveLimit(g *group, v policy.View) time.Duration {
	if !a.subscription.active || a.scheduler.InForce() || !g.Disk.Limited() {
		return v.Window.AboveLimit(v.Limit)
	}
	t, ok := a.Events.Totals(g.Inode)
	if !ok || !t.Counted {
		return v.Window.AboveLimit(v.Limit)
	}
	more := t.Above - g.above
	if more < 0 { // the count has begun anew
		more = t.Above
	}
	g.above = t.Above
	return more
}

// undone records the owners' writes of quotas that refills may have undone, as inotify reports them (apply/undone.go).
// The value of the file is left alone. Groups with a declared limit are ignored: either the owner rewrote the same
// value, or the ledger finds that the file differs from the declared value (ledger.WasLost).
func (a *Agent) undone(now time.Time) {
	if a.Undone == nil {
		return
	}
	found, err := a.Undone()
	if err != nil && !a.blind {
		a.blind = true
		a.Log.Warn("cannot detect all writes of owners that a refill undoes", "error", err)
	}
	for _, u := range found {
		g := a.groups[u.ID]
		if g == nil {
			continue
		}
		g.Stale(now)
		if held, err := u.InFile.Time(); err == nil && g.Declared == nil {
			a.record.Undone(g.Account, held)
		}
	}
}
