package agent

import (
	"slices"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
)

// shield keeps the tasks of the cpuset root off CPUs that are somebody's own, as long as that is wanted. The group that
// they are in is confined as all others are, from the next look on, and has all CPUs again before they are let go.
func (a *Agent) shield(wanted bool) []plan.Result {
	r := &a.reservations
	switch {
	case !wanted && r.shield.Group == "":
		return nil
	case !wanted:
		results := a.Writer.Unshield()
		a.unshielded(results)
		return results
	case a.DryRun, a.held():
		return nil
	}
	s, err := a.Writer.Shield()
	if err != nil {
		r.problem = "shield: " + err.Error()
	}
	if s.New && err == nil {
		a.Log.Info("the tasks of the root are in a group", "cgroup", s.Group, "tasks", s.Tasks)
		r.at = time.Time{}
	}
	r.shield = s
	return nil
}

// Recovered takes note of what became of all that an agent before this one had left behind. It is called before the first
// turn. Nothing is left but what was refused, which is tried again.
func (a *Agent) Recovered(results []plan.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unshielded(results)
}

// unshielded books what became of the shield.
func (a *Agent) unshielded(results []plan.Result) {
	r := &a.reservations
	r.shield = apply.Shield{}
	for _, x := range results {
		if x.Change.Knob == plan.Shield && x.Outcome == plan.Refused {
			r.shield.Group = x.Change.Cgroup.Path
			r.problem = r.shield.Group + ": not removed: " + x.Err
		}
	}
}

// shieldless says why there is no shield where one is asked for.
func (a *Agent) shieldless() string {
	r := &a.reservations
	if !r.rules.Shield || a.Tree.Version() == cgroup.V1 || !slices.ContainsFunc(r.last.Shares, func(sh reserve.Share) bool { return !sh.Partition }) {
		return ""
	}
	return "shield: cgroup v2 has no cpuset hierarchy of its own; with policy auto, from 6.7, a partition takes its CPUs from the tasks of the root"
}

// shieldStatus is nil where there is no shield.
func (r *reservations) shieldStatus() *report.Shield {
	if r.shield.Group == "" {
		return nil
	}
	return &report.Shield{Cgroup: r.shield.Group, Tasks: r.shield.Tasks}
}
