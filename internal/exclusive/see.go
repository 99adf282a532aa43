package exclusive

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// seeCPUs shows the ledger the values of the groups' files, and returns the groups with the ledger's answers. Ledger
// and journal forget groups that are gone.
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
	noQuota := map[string]bool{}
	for _, key := range c.Ledger.Ours(func(k plan.Key) bool { return k.Knob == plan.Quota }) {
		e, _ := c.Ledger.Entry(key)
		noQuota[key.Path] = e.InFile == plan.Time(cpu.Unlimited)
	}
	list := make([]reserve.Group, 0, len(sets))
	for _, s := range sets {
		c.Agent.Yield()
		g := c.seeCPUSet(now, s, ids[path.Dir(s.Path)], online)
		g.NoQuota = noQuota[s.Path]
		list = append(list, g)
	}
	return list
}

// seeCPUSet shows the ledger the CPUs of one group. On v1 the kernel copies the CPUs of a group, also ours, into a new
// child.
func (c *CPUs) seeCPUSet(now time.Time, s cgroup.CPUSet, parent workload.ID, online cpu.Set) reserve.Group {
	g := reserve.Group{ID: workload.ID{Path: s.Path, Inode: s.Inode}, CPUs: s.CPUs, Baseline: s.CPUs}
	key, v1 := plan.Key{ID: g.ID, Knob: plan.CPUs}, c.Tree.Version() == cgroup.V1
	if !c.Of(key) { // suppression binds offline work to these CPUs
		return g
	}
	before, known := c.Ledger.Entry(key)
	if baseline, copied := c.Ledger.Copied(plan.Key{ID: parent, Knob: plan.CPUs}, plan.Set(s.CPUs)); copied && !known &&
		v1 {
		c.Ledger.Adopt(key, baseline, plan.Set(s.CPUs))
		c.Agent.Adopt(g.ID, plan.CPUs, plan.Set(s.CPUs), baseline)
	}
	had, _ := before.InFile.Set() // the ledger has it from a set
	sheds := v1 && len(had.Minus(s.CPUs).And(online)) == 0
	e := c.seeCPUValue(now, key, ledger.Sight{InFile: plan.Set(s.CPUs), Sheds: sheds})
	g.Blocked, g.Problem = e.Blocked(now), strings.TrimPrefix(e.Problem, string(plan.Refused)+": ")
	part, _ := c.Ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Partition})
	exclusive, _ := c.Ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Exclusive})
	g.Partition, g.Unpartitions = part.Ours(), cmp.Or(part.Blocked(now), exclusive.Blocked(now))
	if exclusive.Ours() {
		written, _ := exclusive.InFile.Set()
		owners, _ := exclusive.Baseline.Set()
		g.Exclusive = written.Minus(owners)
	}
	if e.State == ledger.Foreign {
		return g
	}
	g.Baseline, _ = e.Baseline.Set()
	if !e.Ours() {
		g.Lost = g.Baseline.Minus(g.CPUs)
	}
	return g
}

// seeExclusive reads what owners have in cpuset.cpus.exclusive of the containers that may become partitions, and of the
// groups above them. A partition may have its CPUs there alone: it is bound to them.
func (c *CPUs) seeExclusive(in *reserve.Input) {
	passes := map[string]bool{}
	for _, x := range in.Containers {
		passes[x.Path] = in.Partitions
		for p := range workload.Above(x.Path) {
			passes[p] = in.Partitions
		}
	}
	others := in.Partitioned
	for _, g := range in.Groups {
		others = others.Minus(g.Exclusive)
	}
	for i := range in.Groups {
		g := &in.Groups[i]
		c.Agent.Yield()
		if passes[g.Path] {
			g.ExclusiveBaseline = c.ownersExclusive(g.ID)
		}
		if len(others) == 0 || len(g.Baseline) > 0 || g.Partition {
			continue
		}
		if kind, _, err := c.Tree.Partition(g.Path); err == nil && kind != string(plan.Member) {
			g.Baseline, _ = c.Tree.ExclusiveCPUs(g.Path)
		}
	}
}

func (c *CPUs) ownersExclusive(id workload.ID) (set cpu.Set) {
	if e, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: plan.Exclusive}); e.Ours() {
		set, _ = e.Baseline.Set()
		return set
	}
	set, _ = c.Tree.ExclusiveCPUs(id.Path)
	return set
}

// seeCPUValue shows the ledger the value of a file, and keeps the journal in step.
func (c *CPUs) seeCPUValue(now time.Time, key plan.Key, s ledger.Sight) ledger.Entry {
	switch c.Ledger.See(now, key, s) {
	case ledger.Resized:
		c.Agent.Forget(key.ID, key.Knob)
	case ledger.Reset:
		c.Log.Info("the owner has restored CPUs; they are written again after a while",
			"cgroup", key.Path, "knob", key.Knob, "cpus", s.InFile)
	case ledger.Overrode:
		c.Log.Warn("another program has set CPUs: left alone", "cgroup", key.Path, "knob", key.Knob, "cpus", s.InFile)
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

// bound is the CPUs that each group's file holds, by path: on v1 a container has another inode in that hierarchy.
func (c *CPUs) bound() map[string]plan.Value {
	cpus := map[string]plan.Value{}
	for _, key := range c.Ledger.Known(func(k plan.Key) bool { return k.Knob == plan.CPUs }) {
		e, _ := c.Ledger.Entry(key)
		cpus[key.Path] = e.InFile
	}
	return cpus
}

// seeCPUFile shows the ledger a file that only some groups have, and forgets a file that is gone. A partition of ours
// that the kernel calls invalid counts as refused.
func (c *CPUs) seeCPUFile(now time.Time, key plan.Key) {
	inode, err := c.Tree.CPUSetInode(key.Path)
	held, err2 := apply.Read(c.Tree, key.Path, key.Knob)
	switch {
	case errors.Is(errors.Join(err, err2), fs.ErrNotExist), err == nil && inode != key.Inode:
		c.forgetCPUs(key)
		return
	case err != nil, err2 != nil:
		return
	}
	e := c.seeCPUValue(now, key, ledger.Sight{InFile: held})
	if key.Knob != plan.Partition || !e.Ours() {
		return
	}
	if _, why, err := c.Tree.Partition(key.Path); err == nil && why != "" {
		c.Log.Warn("the kernel calls a partition invalid: removing it", "cgroup", key.Path, "why", why)
		change := plan.Change{Cgroup: key.ID, Knob: key.Knob}
		c.Ledger.Learn(now, []plan.Result{{Change: change, Outcome: plan.Refused, Err: why}})
	}
}

// Status is the status of exclusive CPUs; nil where no container requests any and none has any.
func (c *CPUs) Status() *report.Reserve {
	requested := c.requested && c.Rules.Policy != strategy.ReserveNone
	if c.Topology == nil || !requested && len(c.shares) == 0 {
		return nil
	}
	out := &report.Reserve{Policy: string(c.Rules.Policy), All: c.Rules.All, Shared: c.last.Shared.String(),
		CPUs:      len(c.last.Shared),
		MinShared: c.rules.MinShared, Kept: c.rules.CPUs.String(), Unbound: c.unbound, Shield: c.shieldStatus(),
		Changed:   len(c.Ledger.Ours(c.Of)),
		Exclusive: []report.ExclusiveCPUs{}, Refused: []report.NoCPUs{}, Pinned: []report.BoundCPUs{}}
	for _, sh := range c.last.Shares {
		if _, has := c.shares[sh.Path]; has {
			out.Exclusive = append(out.Exclusive, report.ExclusiveCPUs{Cgroup: sh.Path, Request: sh.Request,
				CPUs: sh.Own.String(), N: len(sh.Own),
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

// readMachine reads what does not depend on the ledger.
func (c *CPUs) readMachine(in *reserve.Input) (sets []cgroup.CPUSet, err error) {
	if c.Owner != nil {
		in.Owner = c.Owner()
	}
	if c.Kept != nil {
		kept, more := c.Kept()
		in.Rules.CPUs, in.Rules.MinShared = in.Rules.CPUs.Union(kept), max(in.Rules.MinShared, more)
		in.Requested = more
	}
	if in.Topology, err = c.Topology(); err != nil {
		return nil, err
	}
	in.Partitioned = c.partitioned(in.Topology.Set())
	in.Isolated = c.Isolated.Union(in.Partitioned)
	return c.Tree.CPUSets("/")
}

// partitioned is the set of CPUs in valid partitions: the root lacks them (v2, kernel/cgroup/cpuset.c,
// cpuset.cpus.effective).
func (c *CPUs) partitioned(online cpu.Set) cpu.Set {
	if c.Tree.Version() == cgroup.V1 {
		return nil
	}
	if effective, err := c.Tree.EffectiveCPUs("/"); err == nil && len(effective) > 0 {
		return online.Minus(effective)
	}
	return nil
}

// Balanced is the CPUs that are neither isolated nor in a partition.
func (c *CPUs) Balanced() (cpu.Topology, error) {
	on, err := c.Topology()
	online := on.Set()
	left := online.Minus(c.Isolated).Minus(c.partitioned(online))
	on.Places = slices.DeleteFunc(slices.Clone(on.Places), func(p cpu.Place) bool { return !left.Contains(p.CPU) })
	return on, err
}
