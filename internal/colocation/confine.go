package colocation

import (
	"errors"
	"io/fs"
	"path"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/suppress"
	"plimsoll/internal/workload"
)

// confinable finds the groups by which offline work is bound to CPUs, and the machine's CPUs; none where a group cannot
// be bound, or where containers may have exclusive CPUs.
func (c *Colocation) confinable(levels []policy.Level) ([]suppress.Confined, cpu.Topology, error) {
	on, taken, err := c.Agent.Topology()
	c.suppressor.taken = taken
	if taken != "" || !c.Tree.HasCPUSets() {
		return nil, cpu.Topology{}, nil
	}
	if err != nil {
		return nil, on, err
	}
	var list []suppress.Confined
	for _, l := range levels {
		if l.Inner || l.QOS.Rank() != strategy.Offline {
			continue
		}
		var groups []bound // a tenant may have made any number
		c.Agent.Outside(func() { groups, err = c.cpusets(l.Path) })
		if errors.Is(err, fs.ErrNotExist) { // the controller is not enabled for it
			return nil, on, nil
		}
		if err != nil {
			return nil, on, err
		}
		if len(groups[0].cpus) == 0 { // on v2 it inherits, which cannot be restored while tasks are in it (ENOSPC)
			return nil, on, nil
		}
		for _, g := range groups {
			follows := g.Path != l.Path && c.Tree.Version() == cgroup.V2
			list = append(list, suppress.Confined{ID: g.ID, Before: c.cpusBefore(g, list), Follows: follows})
		}
	}
	return list, on, nil
}

// bound is a group and its current CPUs.
type bound struct {
	workload.ID
	cpus cpu.Set
}

// cpusets lists a group and those below it that have CPUs in their file.
func (c *Colocation) cpusets(group string) ([]bound, error) {
	cpus, err := c.Tree.CPUs(group)
	inode, err2 := c.Tree.CPUSetInode(group)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	list := []bound{{workload.ID{Path: group, Inode: inode}, cpus}}
	below, err := c.Tree.CPUSets(group)
	for _, s := range below {
		if len(s.CPUs) > 0 { // else it inherits (v2), or cannot have tasks (v1)
			list = append(list, bound{workload.ID{Path: s.Path, Inode: s.Inode}, s.CPUs})
		}
	}
	return list, err
}

// cpusBefore is the CPUs of a group before us. A group made since then has copied its parent's CPUs, which are ours
// (v1): its baseline is that of the parent. above lists the groups found so far, parents first.
func (c *Colocation) cpusBefore(g bound, above []suppress.Confined) cpu.Set {
	key, held := plan.Key{ID: g.ID, Knob: plan.CPUs}, plan.Set(g.cpus)
	if e, _ := c.Ledger.Entry(key); e.Ours() {
		set, _ := e.Baseline.Set() // the ledger has it from a set
		return set
	}
	for _, p := range above {
		e, _ := c.Ledger.Entry(plan.Key{ID: p.ID, Knob: plan.CPUs})
		if p.Path == path.Dir(g.Path) && e.Wrote == held && c.Tree.Version() == cgroup.V1 {
			c.Agent.Adopt(g.ID, plan.CPUs, held, plan.Set(p.Before))
			c.Ledger.Adopt(key, plan.Set(p.Before), held)
			c.Ledger.Claim(key, plan.ForColocation)
			return p.Before
		}
	}
	return g.cpus
}
