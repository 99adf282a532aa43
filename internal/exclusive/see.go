package exclusive

import (
	"cmp"
	"path"
	"strings"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// seeCPUs has the ledger compare what is in the groups' files with what is known, and tells what it says. What it knows of
// groups that are gone is forgotten, by the journal too.
func (c *CPUs) seeCPUs(now time.Time, sets []cgroup.CPUSet, online cpu.Set) []reserve.Group {
	ids := map[string]workload.ID{}
	for _, s := range sets {
		ids[s.Path] = workload.ID{Path: s.Path, Inode: s.Inode}
	}
	for _, key := range c.Ledger.Known(func(k plan.Key) bool { return OfCPUs(k.Knob) }) {
		switch {
		case key.Knob != plan.CPUs:
			c.seeCPUFile(now, key)
		case ids[key.Path] != key.ID:
			c.forgetCPUs(key)
		}
	}
	lifted := map[string]bool{}
	for _, key := range c.Ledger.Ours(func(k plan.Key) bool { return k.Knob == plan.Quota }) {
		e, _ := c.Ledger.Entry(key)
		lifted[key.Path] = e.Held == plan.Time(cpu.Unlimited)
	}
	list := make([]reserve.Group, 0, len(sets))
	for _, s := range sets {
		g := c.seeCPUSet(now, s, ids[path.Dir(s.Path)], online)
		g.Lifted = lifted[s.Path]
		list = append(list, g)
	}
	return list
}

// seeCPUSet sees the CPUs of one group. On v1 a group that was made in one with CPUs of ours has copied them.
func (c *CPUs) seeCPUSet(now time.Time, s cgroup.CPUSet, parent workload.ID, online cpu.Set) reserve.Group {
	g := reserve.Group{ID: workload.ID{Path: s.Path, Inode: s.Inode}, CPUs: s.CPUs, Baseline: s.CPUs}
	key, v1 := plan.Key{ID: g.ID, Knob: plan.CPUs}, c.Tree.Version() == cgroup.V1
	if !c.Of(key) { // offline work is bound to it
		return g
	}
	before, known := c.Ledger.Entry(key)
	if baseline, copied := c.Ledger.Copied(plan.Key{ID: parent, Knob: plan.CPUs}, plan.Set(s.CPUs)); copied && !known && v1 {
		c.Ledger.Adopt(key, baseline, plan.Set(s.CPUs))
		c.Agent.Adopt(g.ID, plan.CPUs, plan.Set(s.CPUs), baseline)
	}
	had, _ := cpu.ParseSet(string(before.Held)) // it was a set when it was read
	e := c.seeCPUValue(now, key, ledger.Sight{Held: plan.Set(s.CPUs), Sheds: v1 && len(had.Minus(s.CPUs).And(online)) == 0})
	g.Blocked, g.Problem = e.Blocked(now), strings.TrimPrefix(e.Problem, string(plan.Refused)+": ")
	part, _ := c.Ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Partition})
	exclusive, _ := c.Ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Exclusive})
	g.Partition, g.Unpartitions = part.Ours(), cmp.Or(part.Blocked(now), exclusive.Blocked(now))
	if exclusive.Ours() {
		g.Exclusive, _ = cpu.ParseSet(string(exclusive.Held))
	}
	if e.State == ledger.Foreign {
		return g
	}
	g.Baseline, _ = cpu.ParseSet(string(e.Baseline))
	if !e.Ours() {
		g.Lost = g.Baseline.Minus(g.CPUs)
	}
	return g
}

// seeCPUValue says what happened to a file, and keeps the journal true to it.
func (c *CPUs) seeCPUValue(now time.Time, key plan.Key, s ledger.Sight) ledger.Entry {
	switch c.Ledger.See(now, key, s) {
	case ledger.Resized:
		c.Agent.Forget(key.ID, key.Knob)
	case ledger.Reset:
		c.Log.Info("its owner has put CPUs back: applied again after a while", "cgroup", key.Path, "knob", key.Knob, "cpus", s.Held)
	case ledger.Overrode:
		c.Log.Warn("another program has set CPUs: left alone", "cgroup", key.Path, "knob", key.Knob, "cpus", s.Held)
		c.Agent.Forget(key.ID, key.Knob)
		c.Agent.Overrode(key.Path)
	}
	e, _ := c.Ledger.Entry(key)
	return e
}

func (c *CPUs) forgetCPUs(key plan.Key) {
	c.Ledger.Drop(key.ID, key.Knob)
	c.Agent.Forget(key.ID, key.Knob)
}

// seeCPUFile sees a file that only some groups have, and forgets one that is gone. A partition of ours that the kernel calls
// invalid counts as refused.
func (c *CPUs) seeCPUFile(now time.Time, key plan.Key) {
	inode, err := c.Tree.CPUSetInode(key.Path)
	held, err2 := apply.Read(c.Tree, key.Path, key.Knob)
	switch {
	case observe.Gone(err), err == nil && inode != key.Inode, observe.Gone(err2):
		c.forgetCPUs(key)
		return
	case err != nil, err2 != nil:
		return
	}
	e := c.seeCPUValue(now, key, ledger.Sight{Held: held})
	if key.Knob != plan.Partition || !e.Ours() {
		return
	}
	if _, why, err := c.Tree.Partition(key.Path); err == nil && why != "" {
		c.Log.Warn("the kernel calls a partition invalid: taken back", "cgroup", key.Path, "why", why)
		c.Ledger.Learn(now, []plan.Result{{Change: plan.Change{Cgroup: key.ID, Knob: key.Knob}, Outcome: plan.Refused, Err: why}})
	}
}

// Status is what the status says of CPUs of their own; nil where nobody asks for any and none stand.
func (c *CPUs) Status() *report.Reserve {
	asked := c.asking && c.Rules.Policy != strategy.ReserveNone
	if c.Topology == nil || !asked && len(c.shares) == 0 {
		return nil
	}
	out := &report.Reserve{Policy: string(c.Rules.Policy), All: c.Rules.All, Shared: c.last.Shared.String(), CPUs: len(c.last.Shared),
		Floor: c.rules.Floor, Kept: c.rules.CPUs.String(), Unbound: c.unbound, Shield: c.shieldStatus(),
		Own: []report.OwnCPUs{}, Refused: []report.NoCPUs{}, Pinned: []report.BoundCPUs{}}
	for _, sh := range c.last.Shares {
		if _, has := c.shares[sh.Path]; has {
			out.Own = append(out.Own, report.OwnCPUs{Cgroup: sh.Path, Request: sh.Request, CPUs: sh.Own.String(), N: len(sh.Own),
				MayUse: sh.CPUs.String(), Packed: sh.Packed, Unlimited: sh.Unlimited, Partition: sh.Partition})
		}
	}
	for _, f := range c.last.Refused {
		out.Refused = append(out.Refused, report.NoCPUs{Cgroup: f.Name, Why: f.Why})
	}
	for _, p := range c.last.Pinned {
		out.Pinned = append(out.Pinned, report.BoundCPUs{Cgroup: p.Path, CPUs: p.CPUs.String()})
	}
	return out
}
