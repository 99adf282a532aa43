package agent

import (
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// A node has hundreds of containers, and most of them do nothing at most times. What runs in a pod that has a limit
// is charged to the pod too (kernel/sched/fair.c, update_curr and account_cfs_rq_runtime, for each level), which
// starts the pod's period timer, and each of that timer's expiries is counted in its nr_periods. So while the
// counters of a pod stand still, nothing runs in it, and its containers need not be read: one that begins to run is
// seen at the first look after the pod's next expiry, within a period and a look.
//
// What a CPU has left of the slice that it took last, a millisecond at most (min_cfs_rq_runtime), is used up before
// the timer starts.

const (
	// stillPeriods is for how many periods nothing must have moved. A timer counts up to two more expiries after the
	// last use, and those of pod and containers are not in phase.
	stillPeriods = 3
	// dozeAtMost is after how long all of a pod is looked at again although nothing moved.
	dozeAtMost = 10 * time.Second
)

// doze looks at a pod in which nothing has moved of late, by the counters of the pod alone, when they are due. It is
// false when there is more to be done; else the policy is told only that the groups are still there.
func (a *Agent) doze(now time.Time, p *workload.Pod, in *policy.Input) bool {
	pod := a.groups[p.ID]
	if p.Path == "" || !a.asleep(now, pod, itself(p)) || !pod.disk.Limited() {
		return false
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		if !a.asleep(now, a.groups[c.ID], *c) {
			return false
		}
	}
	due := pod.due
	if !now.Before(due) {
		if a.moved(pod) {
			return false
		}
		due, pod.quiet = a.inStep(now, pod.interval()), now
	}
	a.keep(pod, due, in)
	for i := range p.Containers {
		g := a.groups[p.Containers[i].ID]
		if quiet := pod.quiet.Add(-pod.disk.Period); quiet.After(g.quiet) {
			g.quiet = quiet
		}
		a.keep(g, due, in)
	}
	return true
}

// asleep says whether a group has nothing to be done for, and nothing happened to it of late.
func (a *Agent) asleep(now time.Time, g *group, c workload.Container) bool {
	if g == nil || !g.settled || !g.ready || g.wrote.foreign || !c.Class.Burstable() {
		return false
	}
	c.Paused = c.Paused || a.Pauses.paused(c.Path, now)
	return c == g.Container && now.Sub(g.diskAt) < dozeAtMost && now.Sub(g.moved) > stillPeriods*g.disk.Period
}

// moved says whether the counters of a group are other ones than at the last look, or cannot be read.
func (a *Agent) moved(g *group) bool {
	a.account.self.Looks++
	c, err := a.Tree.Stat(g.Path)
	if last := g.reading.Counters; !c.HasUsage {
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	}
	return err != nil || c != g.reading.Counters
}

func (a *Agent) keep(g *group, due time.Time, in *policy.Input) {
	g.seen, g.looked, g.due = a.turn, false, due
	in.Asleep = append(in.Asleep, g.ID)
}
