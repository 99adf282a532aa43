package colocation

import (
	"errors"
	"io/fs"
	"plimsoll/internal/policy"
	"plimsoll/internal/schedext"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
	"slices"
	"time"
)

// schedule has a scheduler of ours in force where that is the mechanism, and the groups read that it says were throttled.
func (c *Colocation) schedule(now time.Time, mechanism strategy.Mechanism, free bool) {
	options := schedext.Options{Expel: c.asked.Expels() || expels(c.levels), SchedExt: c.asked.SchedExt}
	changed := c.Scheduler.Keep(now, free, c.asked.Mechanism == strategy.MechanismSchedExt, mechanism, options, c.levels)
	if len(changed) == 0 {
		return
	}
	for _, g := range c.Agent.Groups() {
		if slices.Contains(changed, g.Inode) {
			g.Due = now
			g.MarkDue()
		}
	}
}

// expels says whether some group is to have no offline task beside it, whatever its class: a pod may ask for that itself.
func expels(levels []policy.Level) bool {
	return slices.ContainsFunc(levels, func(l policy.Level) bool { return l.QOS.Expels() })
}

// machine is what this machine has. Whether a scheduler can be loaded is asked when somebody wants it.
func (c *Colocation) machine(now time.Time, asked strategy.Mechanism) policy.Machine {
	if asked == strategy.MechanismSchedExt {
		c.Scheduler.Probe(now, &c.Machine)
	}
	c.cookie(asked)
	c.Machine.IdentitySysctl = c.identitySysctl()
	return c.Machine
}

// identitySysctl is the root group where the machine has a switch of Group Identity, which is a knob of it.
func (c *Colocation) identitySysctl() (root workload.ID) {
	if !c.Machine.Identity {
		return root
	}
	if _, err := c.Tree.IdentityEnabled(); errors.Is(err, fs.ErrNotExist) {
		return root
	}
	inode, err := c.Tree.Inode("/")
	if err != nil {
		return root
	}
	return workload.ID{Path: "/", Inode: inode}
}
