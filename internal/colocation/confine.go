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
	before := map[string]suppress.Confined{} // by path
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
			c.Agent.Yield()
			one := suppress.Confined{ID: g.ID, Before: c.cpusBefore(g, before[path.Dir(g.Path)]),
				Follows: g.Path != l.Path && c.Tree.Version() == cgroup.V2}
			list, before[g.Path] = append(list, one), one
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

// cpusBefore is the CPUs of a group before us. A group made since then may have copied CPUs of ours from its parent
// (v1), also those that the parent had before the last write: its baseline is that of the parent.
func (c *Colocation) cpusBefore(g bound, parent suppress.Confined) cpu.Set {
	key, held := plan.Key{ID: g.ID, Knob: plan.CPUs}, plan.Set(g.cpus)
	e, known := c.Ledger.Entry(key)
	if e.Ours() {
		set, _ := e.Baseline.Set() // the ledger has it from a set
		return set
	}
	_, copied := c.Ledger.Copied(plan.Key{ID: parent.ID, Knob: plan.CPUs}, held)
	if known || !copied || c.Tree.Version() != cgroup.V1 {
		return g.cpus
	}
	c.Agent.Adopt(g.ID, plan.CPUs, held, plan.Set(parent.Before))
	c.Ledger.Adopt(key, plan.Set(parent.Before), held)
	c.Ledger.Claim(key, plan.ForColocation)
	return parent.Before
}
