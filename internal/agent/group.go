package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/record"
	"plimsoll/internal/workload"
)

// group is what the agent keeps of one group that it looks after.
type group struct {
	*record.Group
	suppressed bool           // it sends no throttle events
	late       time.Time      // when its owner's write of the limit counts as lost; zero: it is in force
	limit      cpu.Bandwidth  // its owner's
	counted    time.Duration  // the quota by which the kernel's programs count the use of its periods; 0: the one in force
	refill     *policy.Refill // the last one, as long as its effect is not known
	above      time.Duration  // used above the limit, as the kernel's programs had counted it at the last reading
}

// of is what the agent keeps of a group that was read.
func (a *Agent) of(g *observe.Group) *group {
	known := a.groups[g.ID]
	if known == nil {
		known = &group{Group: a.record.Group(g)}
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

// ours says whether a value of ours stands in the quota or the burst of a group, whatever for.
func (a *Agent) ours(id workload.ID) bool {
	quota, _ := a.ledger.Entry(plan.Key{ID: id, Knob: plan.Quota})
	burst, _ := a.ledger.Entry(plan.Key{ID: id, Knob: plan.Burst})
	return quota.Ours() || burst.Ours()
}

// attend has a group read as often, and its throttles reported, as decisions ask for.
func (a *Agent) attend(v policy.View) {
	g := a.groups[v.Cgroup]
	if g == nil {
		return
	}
	quota, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: plan.Quota})
	g.Attention = observe.Attention{Watched: v.Watched, Stable: v.Stable && g.late.IsZero(), Suppressed: v.SuppressEvents,
		Throttled: v.Window.Throttled > 0, Raised: quota.Ours() && quota.By == plan.ForBandwidth, Bounded: v.BudgetLeft != cpu.Unlimited}
	if !g.Stable {
		g.MarkDue()
	}
	a.suppressEvents(g, v.SuppressEvents)
	if v.Limit.Limited() {
		a.countBy(g, v.Limit.Quota)
	}
	if v.Window.Elapsed() > 0 && g.Looked {
		g.Above(a.aboveLimit(g, v))
		if !v.IsPod {
			a.colocation.Used(g.QOS.Rank(), v.Window.Used)
		}
	}
}
