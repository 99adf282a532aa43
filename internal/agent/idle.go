package agent

import (
	"math"
	"time"

	"plimsoll/internal/workload"
)

// A node has hundreds of containers, and most of them do nothing at most times. What runs in a pod that has a limit
// is charged to the pod too (kernel/sched/fair.c, update_curr and account_cfs_rq_runtime, for each level), which
// starts the pod's period timer, and each of that timer's expiries is counted in its nr_periods. So while the
// counters of a pod stand still, nothing runs in it, and its containers need not be read: one that begins to run is
// seen at the first look after the pod's next expiry, within a period and a look. The same holds of a container's own
// counters where it is in no pod.
//
// Where the kernel tells of throttles, a pod that nothing is to be done for may rest whatever it uses: if that becomes too
// much for its limit, the kernel says so.
//
// What a CPU has left of the slice that it took last, a millisecond at most (min_cfs_rq_runtime), is used up before
// the timer starts.

const (
	// stillPeriods is for how many periods nothing must have moved. A timer counts up to two more expiries after the
	// last use, and those of pod and containers are not in phase.
	stillPeriods = 3
	// dozeAtMost is after how long all of a pod is looked at again although nothing moved; where the kernel tells of
	// throttles, rarelyEvery, and longer the longer the pod has been idle.
	polledIdleAtMost = 30 * time.Second
	// idleAtMost is the longest that an idle pod goes unread where the kernel tells of throttles and inotify of writes:
	// then reading only keeps the books, and catches what neither told of.
	idleAtMost = 5 * time.Minute
	// sweepTurns is over how many turns at least the reading of all idle pods is spread: a turn that reads all of a
	// thousand pods takes a quarter of a second, in which no throttle is answered. So many pods
	// are read in any turn.
	sweepTurns = 30
	sweepLeast = 32
)

// skipsIdle says whether the pod at this place of the snapshot was idle in the turn before and still is. Its own counters
// are read when they are due, and nothing else of it is even thought of.
func (a *Agent) skipsIdle(now time.Time, place int, containers int) bool {
	pod := a.idlePods[place]
	switch {
	case pod == nil || pod.idleUntil.IsZero():
		return false
	case !now.Before(pod.idleUntil) && a.sweep():
		return false
	case now.Before(pod.due):
	case !a.sweep():
		pod.due = a.inStep(now, idleEvery)
	case a.moved(pod):
		return false
	default:
		pod.due, pod.quiet = a.inStep(now, max(a.interval(pod), a.backOff(now, pod))), now
	}
	pod.seen, pod.skipped, pod.looked = a.turn, a.turn, false
	a.present += containers
	if pod.level == levelPod {
		a.present++
	}
	return true
}

// sweep says whether an idle pod may be read in this turn.
func (a *Agent) sweep() bool {
	a.sweeps--
	return a.sweeps >= 0
}

// sweepsIn is how many idle pods may be read in a turn. Whoever asks is to see all.
func (a *Agent) sweepsIn(pods int, asked bool) int {
	if asked || !a.subscription.active {
		return math.MaxInt
	}
	return max(sweepLeast, pods/sweepTurns)
}

// backOff is for how long a pod need not be read that has been idle for so long already. Where throttles are polled for
// there is none.
func (a *Agent) backOff(now time.Time, pod *group) time.Duration {
	if !a.subscription.active || pod.moved.IsZero() {
		return 0
	}
	return min(now.Sub(pod.moved), idleAtMost)
}

// backOffIdle has a pod skipped from the next turn on, if nothing has moved in it of late and nothing is to be done for it. A
// container that is in no pod is its own.
func (a *Agent) backOffIdle(now time.Time, place int, p *workload.Pod) {
	pod, containers := a.groups[p.ID], p.Containers
	if p.Path == "" && len(containers) == 1 {
		pod, containers = a.groups[containers[0].ID], nil
	}
	a.idlePods[place] = nil
	if !a.isIdle(now, pod) || !pod.disk.Limited() && !a.subscription.active {
		return
	}
	until := pod.diskAt
	for i := range containers {
		g := a.groups[containers[i].ID]
		if !a.isIdle(now, g) {
			return
		}
		if g.diskAt.Before(until) {
			until = g.diskAt
		}
	}
	for i := range containers {
		a.groups[containers[i].ID].top = pod
	}
	most := polledIdleAtMost
	if a.subscription.active {
		most = max(rarelyEvery, a.backOff(now, pod))
	}
	pod.idleUntil, a.idlePods[place] = until.Add(most), pod
}

// isIdle says whether a group has nothing to be done for, and nothing happened to it of late.
func (a *Agent) isIdle(now time.Time, g *group) bool {
	stable := g != nil && g.stable && g.ready && !g.diskAt.IsZero() && !g.Paused && g.Class.Burstable() && g.seen == a.turn
	if !stable || a.subscription.active {
		return stable
	}
	return now.Sub(g.diskAt) < bandwidthEvery && now.Sub(g.moved) > stillPeriods*g.disk.Period
}

// moved says whether the counters of a group are other ones than at the last look, or cannot be read.
func (a *Agent) moved(g *group) bool {
	a.account.self.Looks++
	last := g.reading.Counters
	if !g.disk.Limited() { // its period timer never runs: only its usage tells
		usage, err := a.Tree.Usage(g.Path)
		return err != nil || usage+a.withScheduler(g.Inode).counters.Usage != last.Usage
	}
	c, err := a.Tree.Stat(g.Path)
	c = plus(c, a.withScheduler(g.Inode).counters) // as they are in the reading
	if !c.HasUsage {
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	}
	return err != nil || c != last
}

// markDue has all of the pod looked at in the next turn.
func (g *group) markDue() {
	g.idleUntil = time.Time{}
	if g.top != nil {
		g.top.idleUntil = time.Time{}
	}
}

// skipped says whether the group, or the pod that it is in, was only counted in this turn.
func (a *Agent) skipped(g *group) bool {
	return g.skipped == a.turn || g.top != nil && g.top.skipped == a.turn
}

// wakened tells a container of a pod that was idle until when nothing ran in it.
func (g *group) wakened() {
	if g.top == nil {
		return
	}
	if quiet := g.top.quiet.Add(-g.top.disk.Period); quiet.After(g.quiet) {
		g.quiet = quiet
	}
	g.top = nil
}
