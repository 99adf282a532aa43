package agent

import (
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
)

// group is what the agent keeps of one group that it looks after.
type group struct {
	*observe.Group
	suppressed bool // it sends no throttle events
	quotaOurs  bool // a value of ours stood in the file at the last reading
	burstOurs  bool
	late       time.Time      // when its owner's write of the limit counts as lost; zero: it is in force
	refill     *policy.Refill // the last one, as long as its effect is not known
	undone     time.Duration  // the quota that stands though its owner may have written another one; 0: none
	above      time.Duration  // used above the limit, as the kernel's programs had counted it at the last reading
	status     standing
	saving     saving
	said       []string // outcomes that were logged
	throttles  throttleBook
}

// standing is what the status says of a group and nobody else keeps.
type standing struct {
	Limit      time.Duration
	Period     time.Duration
	Quota      report.Knob
	Burst      report.Knob
	BudgetLeft *time.Duration
	Why        string
	TooLow     bool
	RefillsOff *time.Time
	Totals     report.Totals
}

// Limited says whether the group has a limit at all.
func (s *standing) Limited() bool { return s.Limit != cpu.Unlimited }

// first says whether something is said of the group for the first time.
func (g *group) first(what string) bool {
	if slices.Contains(g.said, what) {
		return false
	}
	g.said = append(g.said, what)
	return true
}

// of is what the agent keeps of a group that was read.
func (a *Agent) of(g *observe.Group) *group {
	known := a.groups[g.ID]
	if known == nil {
		known = &group{Group: g}
		a.groups[g.ID] = known
	}
	return known
}

// at is the group of a path; nil: there is none.
func (a *Agent) at(path string) *group {
	if g := a.reader.At(path); g != nil {
		return a.groups[g.ID]
	}
	return nil
}
