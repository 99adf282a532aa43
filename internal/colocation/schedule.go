package colocation

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

// Schedule runs our sched_ext scheduler where that is the mechanism decided on, and makes the groups due that it has
// throttled. free says that it may be loaded.
func (c *Colocation) Schedule(now time.Time, free bool) {
	options := schedext.Options{Expel: c.requested.Expels(), SchedExt: c.requested.SchedExt}
	changed := c.Scheduler.Keep(now, free, c.requested.Mechanism == strategy.MechanismSchedExt, c.mechanism,
		options, c.levels)
	if len(changed) == 0 {
		return
	}
	for _, g := range c.Reader.Groups() {
		if slices.Contains(changed, g.Inode) {
			g.Due = now
			g.MarkDue()
		}
	}
}

// machine is what this machine supports. Whether a scheduler can be loaded is only checked on request.
func (c *Colocation) machine(now time.Time, requested strategy.Mechanism) policy.Machine {
	if requested == strategy.MechanismSchedExt {
		c.Scheduler.Probe(now, &c.Machine)
	}
	c.cookie(requested)
	c.Machine.IdentitySysctl = c.identitySysctl()
	return c.Machine
}

// identitySysctl is the key for the sysctl of Group Identity, the root group; zero where there is no sysctl.
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
