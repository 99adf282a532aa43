package agent

import (
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
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
