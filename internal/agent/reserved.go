package agent

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

// seeCPUs has the ledger compare what stands in the groups' files with what is known, and tells what it says. What it knows of
// groups that are gone is forgotten, by the journal too.
func (a *Agent) seeCPUs(now time.Time, sets []cgroup.CPUSet, online cpu.Set) []reserve.Group {
	ids := map[string]workload.ID{}
	for _, s := range sets {
		ids[s.Path] = workload.ID{Path: s.Path, Inode: s.Inode}
	}
	for _, key := range a.ledger.Known(func(k plan.Key) bool { return ofCPUs(k.Knob) }) {
		switch {
		case key.Knob != plan.CPUs:
			a.seeCPUFile(now, key)
		case ids[key.Path] != key.ID:
			a.forgetCPUs(key)
		}
	}
	lifted := map[string]bool{}
	for _, key := range a.ledger.Ours(func(k plan.Key) bool { return k.Knob == plan.Quota }) {
		e, _ := a.ledger.Entry(key)
		lifted[key.Path] = e.Held == plan.Time(cpu.Unlimited)
	}
	list := make([]reserve.Group, 0, len(sets))
	for _, s := range sets {
		g := a.seeCPUSet(now, s, ids[path.Dir(s.Path)], online)
		g.Lifted = lifted[s.Path]
		list = append(list, g)
	}
	return list
}

// seeCPUSet sees the CPUs of one group. On v1 a group that was made in one with CPUs of ours has copied them.
func (a *Agent) seeCPUSet(now time.Time, s cgroup.CPUSet, parent workload.ID, online cpu.Set) reserve.Group {
	g := reserve.Group{ID: workload.ID{Path: s.Path, Inode: s.Inode}, CPUs: s.CPUs, Baseline: s.CPUs}
	key, v1 := plan.Key{ID: g.ID, Knob: plan.CPUs}, a.Tree.Version() == cgroup.V1
	if !a.reserves(key) { // offline work is bound to it
		return g
	}
	before, known := a.ledger.Entry(key)
	if baseline, copied := a.ledger.Copied(plan.Key{ID: parent, Knob: plan.CPUs}, value(s.CPUs)); copied && !known && v1 {
		a.ledger.Adopt(key, baseline, value(s.CPUs))
		a.sayJournal(a.Writer.Adopt(g.ID, plan.CPUs, value(s.CPUs), baseline))
	}
	had, _ := cpu.ParseSet(string(before.Held)) // it was a set when it was read
	e := a.seeCPUValue(now, key, ledger.Sight{Held: value(s.CPUs), Sheds: v1 && len(had.Minus(s.CPUs).And(online)) == 0})
	g.Blocked, g.Problem = e.Blocked(now), strings.TrimPrefix(e.Problem, string(plan.Refused)+": ")
	part, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Partition})
	exclusive, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Exclusive})
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
func (a *Agent) seeCPUValue(now time.Time, key plan.Key, s ledger.Sight) ledger.Entry {
	switch a.ledger.See(now, key, s) {
	case ledger.Resized:
		a.sayJournal(a.Writer.Forget(key.ID, key.Knob))
	case ledger.Reset:
		a.Log.Info("its owner has put CPUs back: applied again after a while", "cgroup", key.Path, "knob", key.Knob, "cpus", s.Held)
	case ledger.Overrode:
		a.Log.Warn("another program has set CPUs: left alone", "cgroup", key.Path, "knob", key.Knob, "cpus", s.Held)
		a.sayJournal(a.Writer.Forget(key.ID, key.Knob))
		if a.Foreign != nil {
			a.Foreign(key.Path, key.Path+": another program has set its CPUs; they are left alone")
		}
	}
	e, _ := a.ledger.Entry(key)
	return e
}

func (a *Agent) forgetCPUs(key plan.Key) {
	a.ledger.Drop(key.ID, key.Knob)
	a.sayJournal(a.Writer.Forget(key.ID, key.Knob))
}

// seeCPUFile sees a file that only some groups have, and forgets one that is gone. A partition of ours that the kernel calls
// invalid counts as refused.
func (a *Agent) seeCPUFile(now time.Time, key plan.Key) {
	inode, err := a.Tree.CPUSetInode(key.Path)
	held, err2 := apply.Read(a.Tree, key.Path, key.Knob)
	switch {
	case observe.Gone(err), err == nil && inode != key.Inode, observe.Gone(err2):
		a.forgetCPUs(key)
		return
	case err != nil, err2 != nil:
		return
	}
	e := a.seeCPUValue(now, key, ledger.Sight{Held: held})
	if key.Knob != plan.Partition || !e.Ours() {
		return
	}
	if _, why, err := a.Tree.Partition(key.Path); err == nil && why != "" {
		a.Log.Warn("the kernel calls a partition invalid: taken back", "cgroup", key.Path, "why", why)
		a.ledger.Learn(now, []plan.Result{{Change: plan.Change{Cgroup: key.ID, Knob: key.Knob}, Outcome: plan.Refused, Err: why}})
	}
}

// reserveStatus is what the status says of CPUs of their own; nil where nobody asks for any and none stand.
func (a *Agent) reserveStatus() *report.Reserve {
	r := &a.reservations
	asked := r.asking && a.Reserving.Rules.Policy != strategy.ReserveNone
	if a.Reserving.Topology == nil || !asked && len(r.shares) == 0 {
		return nil
	}
	out := &report.Reserve{Policy: string(a.Reserving.Rules.Policy), All: a.Reserving.Rules.All, Shared: r.last.Shared.String(), CPUs: len(r.last.Shared),
		Floor: r.rules.Floor, Kept: r.rules.CPUs.String(), Unbound: r.unbound, Shield: r.shieldStatus(),
		Own: []report.OwnCPUs{}, Refused: []report.NoCPUs{}, Pinned: []report.BoundCPUs{}}
	for _, sh := range r.last.Shares {
		if _, has := r.shares[sh.Path]; has {
			out.Own = append(out.Own, report.OwnCPUs{Cgroup: sh.Path, Request: sh.Request, CPUs: sh.Own.String(), N: len(sh.Own),
				MayUse: sh.CPUs.String(), Packed: sh.Packed, Unlimited: sh.Unlimited, Partition: sh.Partition})
		}
	}
	for _, f := range r.last.Refused {
		out.Refused = append(out.Refused, report.NoCPUs{Cgroup: f.Name, Why: f.Why})
	}
	for _, p := range r.last.Pinned {
		out.Pinned = append(out.Pinned, report.BoundCPUs{Cgroup: p.Path, CPUs: p.CPUs.String()})
	}
	return out
}
