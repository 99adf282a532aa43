package agent

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
func (a *Agent) confinable(levels []policy.Level) ([]policy.Confined, cpu.Topology, error) {
	r := a.Reserving
	if r.Topology == nil || r.Rules.Policy != strategy.ReserveNone || a.reservations.active || !a.Tree.HasCPUSets() {
		return nil, cpu.Topology{}, nil
	}
	on, err := r.Topology()
	if err != nil {
		return nil, on, err
	}
	var list []policy.Confined
	for _, l := range levels {
		if l.Inner || l.QOS.Rank() != strategy.Offline {
			continue
		}
		groups, err := a.cpusets(l.Path)
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
			v1 := a.Tree.Version() == cgroup.V1
			list = append(list, policy.Confined{ID: g.ID, Before: a.cpusBefore(g, list), Follows: g.Path != l.Path && !v1, Sheds: v1})
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
func (a *Agent) cpusets(group string) ([]bound, error) {
	cpus, err := a.Tree.CPUs(group)
	inode, err2 := a.Tree.CPUSetInode(group)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	list := []bound{{workload.ID{Path: group, Inode: inode}, cpus}}
	below, err := a.Tree.CPUSets(group)
	for _, s := range below {
		if len(s.CPUs) > 0 { // else it inherits (v2), or can have no tasks (v1)
			list = append(list, bound{workload.ID{Path: s.Path, Inode: s.Inode}, s.CPUs})
		}
	}
	return list, err
}

// cpusBefore is what a group was bound to before us. One that was made meanwhile has what its parent has because of us
// (v1), and would have had what its parent had. above are those that are known already, parents first.
func (a *Agent) cpusBefore(g bound, above []policy.Confined) cpu.Set {
	knobs := a.priority.knobs
	if before, held := knobs.Before(policy.Key{ID: g.ID, Knob: plan.CPUs}); held {
		set, _ := cpu.ParseSet(string(before)) // it was a set when it was read
		return set
	}
	for _, p := range above {
		key := policy.Key{ID: p.ID, Knob: plan.CPUs}
		if p.Path == path.Dir(g.Path) && knobs.Wrote(key) == value(g.cpus) && a.Tree.Version() == cgroup.V1 {
			return p.Before
		}
	}
	return g.cpus
}

// adoptCPUs books what stands because of us in groups that were made meanwhile.
func (a *Agent) adoptCPUs(wanted []policy.Setting, stands map[policy.Key]plan.Value) {
	for _, s := range wanted {
		held, there := stands[s.Key()]
		if _, known := a.priority.knobs.Before(s.Key()); s.Knob != plan.CPUs || !there || known || held == s.Base {
			continue
		}
		a.sayJournal(a.Writer.Adopt(s.ID, s.Knob, held, s.Base))
		a.priority.knobs.Adopt(s, held)
	}
}
