package exclusive

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
)

// Protect keeps the tasks of the cpuset root off exclusive CPUs, as long as the rules say so. The shield, their group,
// is confined like all others from the next reading on, and has all CPUs again before the tasks leave it. Tasks are
// moved one by one, and no throttle waits for that.
func (c *CPUs) Protect(by Shielder, free bool) (results []plan.Result) {
	wanted := c.last.Shield
	switch {
	case !wanted && c.shield.Group == "":
		return nil
	case !wanted:
		c.Agent.Outside(func() { results = by.Unshield() })
		c.Unshielded(results)
		return results
	case !free:
		return nil
	}
	var s apply.Shield
	var err error
	c.Agent.Outside(func() { s, err = by.Shield() })
	if err != nil {
		c.problem = fmt.Sprintf(report.ProblemShield, err)
	}
	if s.New && err == nil {
		c.Log.Info("the tasks of the root are in a group", "cgroup", s.Group, "tasks", s.Tasks)
		c.at = time.Time{}
	}
	c.shield = s
	return nil
}

// Unshielded records the results of removing the shield.
func (c *CPUs) Unshielded(results []plan.Result) {
	c.shield = apply.Shield{}
	for _, x := range results {
		if x.Change.Knob == plan.Shield && x.Outcome == plan.Refused {
			c.shield.Group = x.Change.Cgroup.Path
			c.problem = fmt.Sprintf(report.ProblemShieldStays, c.shield.Group, x.Err)
		}
	}
}

// shieldless says why there is no shield although the rules request one.
func (c *CPUs) shieldless() string {
	unprotected := func(sh reserve.Share) bool { return !sh.Partition }
	if !c.rules.Shield || c.Tree.Version() == cgroup.V1 || !slices.ContainsFunc(c.last.Shares, unprotected) {
		return ""
	}
	return report.ProblemShieldV2
}

// shieldStatus is nil where there is no shield.
func (c *CPUs) shieldStatus() *report.Shield {
	if c.shield.Group == "" {
		return nil
	}
	return &report.Shield{Cgroup: c.shield.Group, Tasks: c.shield.Tasks}
}
