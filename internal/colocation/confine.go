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
	"plimsoll/internal/workload"
)

// confinable finds the groups that bind offline work to CPUs, and the CPUs there are; none where a group cannot be bound,
// or where others may have CPUs of their own.
func (c *Colocation) confinable(levels []policy.Level) ([]policy.Confined, cpu.Topology, error) {
	on, free, err := c.Agent.Topology()
	if !free || !c.Tree.HasCPUSets() {
		return nil, cpu.Topology{}, nil
	}
	if err != nil {
		return nil, on, err
	}
	var list []policy.Confined
	for _, l := range levels {
		if l.Inner || l.QOS.Rank() != strategy.Offline {
			continue
		}
		groups, err := c.cpusets(l.Path)
		if errors.Is(err, fs.ErrNotExist) { // the controller is not enabled for it
			return nil, on, nil
		}
		if err != nil {
			return nil, on, err
		}
		if len(groups[0].cpus) == 0 { // on v2 it inherits, and while tasks are in it may not do so again (ENOSPC)
			return nil, on, nil
		}
		for _, g := range groups {
			list = append(list, policy.Confined{ID: g.ID, Before: c.cpusBefore(g, list), Follows: g.Path != l.Path && c.Tree.Version() == cgroup.V2})
		}
	}
	return list, on, nil
}

// bound is a group, and what it is bound to now.
type bound struct {
	workload.ID
	cpus cpu.Set
}

// cpusets are a group and those below it that are bound themselves.
func (c *Colocation) cpusets(group string) ([]bound, error) {
	cpus, err := c.Tree.CPUs(group)
	inode, err2 := c.Tree.CPUSetInode(group)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	list := []bound{{workload.ID{Path: group, Inode: inode}, cpus}}
	below, err := c.Tree.CPUSets(group)
	for _, s := range below {
		if len(s.CPUs) > 0 { // else it inherits (v2), or can have no tasks (v1)
			list = append(list, bound{workload.ID{Path: s.Path, Inode: s.Inode}, s.CPUs})
		}
	}
	return list, err
}

// cpusBefore is what a group was bound to before us. One that was made meanwhile has what its parent has because of us
// (v1), and would have had what its parent had: so it is booked. above are those that are known already, parents first.
func (c *Colocation) cpusBefore(g bound, above []policy.Confined) cpu.Set {
	key, held := plan.Key{ID: g.ID, Knob: plan.CPUs}, plan.Set(g.cpus)
	if e, _ := c.Ledger.Entry(key); e.Ours() {
		set, _ := cpu.ParseSet(string(e.Baseline)) // it was a set when it was read
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
