package agent

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
)

// A refill counts when its effect was seen (policy/effect.go). What is read for that is read after the write, so that a
// throttle is ended as soon as before.

// effects counts refills by what became of them.
type effects struct {
	effective, unneeded, ineffective int64
}

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
		counters, err := a.reader.Counters(g.Group, g.refill.Before.HasUsage)
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
	r := g.refill
	g.refill = nil
	totals := &g.status.Totals
	switch e {
	case policy.Effective:
		a.subscription.refills.effective++
		totals.Refills++
		from := r.At
		if r.For.Ahead && r.For.Dry.After(from) {
			from = r.For.Dry // when the throttle would have begun
		}
		totals.WallSaved += g.saving.begin(from, r.For.Expires)
		if !r.For.Ahead {
			a.subscription.delays.add(r.At.Sub(r.For.At))
		}
	case policy.Unneeded:
		a.subscription.refills.unneeded++
		totals.Unneeded++
	case policy.Ineffective:
		a.subscription.refills.ineffective++
		totals.Ineffective++
	}
	of, node := a.state.Refilled(now, r, e)
	a.distrust(g, of)
	a.distrustAll(node)
}

// nodeRefills is the key of the problem that refills have no effect on this node.
const nodeRefills = "refills"

// distrust says that a group's throttles are answered by raises from now on, or by refills again.
func (a *Agent) distrust(g *group, t policy.Trust) {
	if !t.News {
		return
	}
	key := g.Path + " refill"
	delete(a.account.problems, key)
	g.status.RefillsOff = nil
	if !t.Lost {
		a.Log.Info("refills have effect again", "cgroup", g.Path)
		return
	}
	g.status.RefillsOff = &t.Until
	a.account.problems[key] = fmt.Sprintf("%s: refills have no effect: its throttles are answered by raises of the quota, and by a refill again from %s on; "+
		"hint: see refill-on-rewrite in `plimsoll doctor`", g.Path, t.Until.UTC().Format(time.RFC3339))
	a.Log.Warn("refills have no effect: throttles are answered by raises of the quota", "cgroup", g.Path, "until", t.Until,
		"hint", "see refill-on-rewrite in plimsoll doctor")
}

// distrustAll says the same of all groups.
func (a *Agent) distrustAll(t policy.Trust) {
	if !t.News {
		return
	}
	delete(a.account.problems, nodeRefills)
	a.subscription.refillsOff = nil
	if !t.Lost {
		a.Log.Info("refills have effect again")
		return
	}
	a.subscription.refillsOff = &t.Until
	a.account.problems[nodeRefills] = fmt.Sprintf("refills have no effect on this node: throttles are answered by raises of the quota, and by a refill again from %s on; "+
		"hint: see refill-on-rewrite in `plimsoll doctor`", t.Until.UTC().Format(time.RFC3339))
	a.Log.Warn("refills have no effect on this node: throttles are answered by raises of the quota", "until", t.Until,
		"hint", "see refill-on-rewrite in plimsoll doctor")
}
