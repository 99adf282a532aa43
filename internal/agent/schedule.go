package agent

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/schedext"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// schedules has a scheduler of ours in force where that is the mechanism, and the groups read that it says were throttled.
func (a *Agent) schedules(now time.Time, mechanism strategy.Mechanism, levels []policy.Level) {
	asked := a.Strategy.Colocation
	options := schedext.Options{Expel: asked.Expels() || expels(levels), SchedExt: asked.SchedExt}
	for _, inode := range a.scheduler.Keep(now, !a.DryRun && !a.held(), asked.Mechanism == strategy.MechanismSchedExt, mechanism, options, levels) {
		for _, g := range a.groups {
			if g.Inode == inode {
				g.Due = now
				g.MarkDue()
			}
		}
	}
}

// inodes are those of all groups.
func (a *Agent) inodes() []uint64 {
	list := make([]uint64, 0, len(a.groups))
	for id := range a.groups {
		list = append(list, id.Inode)
	}
	return list
}

// expels says whether some group is to have no offline task beside it, whatever its class: a pod may ask for that itself.
func expels(levels []policy.Level) bool {
	return slices.ContainsFunc(levels, func(l policy.Level) bool { return l.QOS.Expels() })
}

// markAllDue has every group looked at: whether it is held at its limit is another question now.
func (a *Agent) markAllDue(now time.Time) {
	for _, g := range a.groups {
		g.Stale(now)
	}
}

// machine is what this machine has. Whether a scheduler can be loaded is asked when somebody wants it.
func (a *Agent) machine(now time.Time, asked strategy.Mechanism) policy.Machine {
	if asked == strategy.MechanismSchedExt {
		a.scheduler.Probe(now, &a.Machine)
	}
	a.cookie(asked)
	a.Machine.IdentitySysctl = a.identitySysctl()
	return a.Machine
}

// identitySysctl is the root group where the machine has a switch of Group Identity, which is a knob of it.
func (a *Agent) identitySysctl() (root workload.ID) {
	if !a.Machine.Identity {
		return root
	}
	if _, err := a.Tree.IdentityEnabled(); errors.Is(err, fs.ErrNotExist) {
		return root
	}
	inode, err := a.Tree.Inode("/")
	if err != nil {
		return root
	}
	return workload.ID{Path: "/", Inode: inode}
}
