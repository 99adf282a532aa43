package observe

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
// Where there are throttle events, a pod that nothing is to be done for may be idle whatever it uses: if that becomes too
// much for its limit, there is an event.
//
// What a CPU has left of the slice that it took last, a millisecond at most (min_cfs_rq_runtime), is used up before
// the timer starts.

const (
	// stillPeriods is for how many periods nothing must have moved. A timer counts up to two more expiries after the
	// last use, and those of pod and containers are not in phase.
	stillPeriods = 3
	// PolledIdleAtMost is after how long all of a pod is looked at again although nothing moved; where the kernel tells of
	// throttles, rarelyEvery, and longer the longer the pod has been idle.
	PolledIdleAtMost = 30 * time.Second
	// IdleAtMost is the longest that an idle pod goes unread where the kernel tells of throttles and inotify of writes:
	// then reading only keeps the books, and catches what neither reported.
	IdleAtMost = 5 * time.Minute
	// sweepTurns is over how many turns at least the reading of all idle pods is spread: a turn that reads all of a
	// thousand pods takes a quarter of a second, in which no throttle is answered. So many pods
	// are read in any turn.
	sweepTurns = 30
	sweepLeast = 32
)

// skipsIdle says whether the pod at this place of the snapshot was idle in the turn before and still is. Its own counters
// are read when they are due, and nothing else of it is even thought of.
func (r *Reader) skipsIdle(now time.Time, place int, groups int) bool {
	pod := r.idlePods[place]
	switch {
	case pod == nil || pod.idleUntil.IsZero():
		return false
	case !now.Before(pod.idleUntil) && r.sweep():
		return false
	case now.Before(pod.Due):
	case !r.sweep():
		pod.Due = r.InStep(now, IdleEvery)
	case r.hasMoved(pod):
		return false
	default:
		pod.Due, pod.Quiet = r.InStep(now, max(r.Interval(pod), r.backOff(now, pod))), now
	}
	pod.seen, pod.skipped, pod.Looked = r.turn, r.turn, false
	r.present += groups
	return true
}

// sweep says whether an idle pod may be read in this turn.
func (r *Reader) sweep() bool {
	r.sweeps--
	return r.sweeps >= 0
}

// sweepsIn is how many idle pods may be read in a turn. With all, every pod.
func (r *Reader) sweepsIn(pods int, asked bool) int {
	if asked || !r.Subscribed {
		return math.MaxInt
	}
	return max(sweepLeast, pods/sweepTurns)
}

// backOff is for how long a pod need not be read that has been idle for so long already. Where throttles are polled for
// there is none.
func (r *Reader) backOff(now time.Time, pod *Group) time.Duration {
	if !r.Subscribed || pod.moved.IsZero() {
		return 0
	}
	return min(now.Sub(pod.moved), IdleAtMost)
}

// backOffIdle has a pod skipped from the next turn on, if nothing has moved in it of late and nothing is to be done for it. A
// container that is in no pod is its own.
func (r *Reader) backOffIdle(now time.Time, place int, p *workload.Pod) {
	pod := r.groups[p.ID]
	if p.Path == "" && len(p.Containers) == 1 {
		pod = r.groups[p.Containers[0].ID]
	}
	r.idlePods[place] = nil
	if !r.isIdle(now, pod) || !pod.Disk.Limited() && !r.Subscribed {
		return
	}
	until, inside := pod.DiskAt, p.IDs()[1:]
	for _, id := range inside {
		g := r.groups[id]
		if !r.isIdle(now, g) {
			return
		}
		if g.DiskAt.Before(until) {
			until = g.DiskAt
		}
	}
	for _, id := range inside {
		r.groups[id].top = pod
	}
	most := PolledIdleAtMost
	if r.Subscribed {
		most = max(rarelyEvery, r.backOff(now, pod))
	}
	pod.idleUntil, r.idlePods[place] = until.Add(most), pod
}

// isIdle says whether a group has nothing to be done for, and nothing happened to it of late.
func (r *Reader) isIdle(now time.Time, g *Group) bool {
	stable := g != nil && g.Stable && g.Ready && !g.DiskAt.IsZero() && !g.Paused && g.Class.Burstable() && g.seen == r.turn
	if !stable || r.Subscribed {
		return stable
	}
	return now.Sub(g.DiskAt) < filesEvery && now.Sub(g.moved) > stillPeriods*g.Disk.Period
}

// moved says whether the counters of a group are other ones than at the last look, or cannot be read.
func (r *Reader) hasMoved(g *Group) bool {
	r.Looks++
	last := g.Reading.Counters
	if !g.Disk.Limited() { // its period timer never runs: only its usage tells
		usage, err := r.Tree.Usage(g.Path)
		return err != nil || usage != last.Usage
	}
	c, err := r.Tree.Stat(g.Path)
	c = c.Plus(r.Extra(g.Inode)) // as they are in the reading
	if !c.HasUsage {
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	}
	return err != nil || c != last
}

// Skipped says whether the group, or the pod that it is in, was only counted in this turn.
func (r *Reader) Skipped(g *Group) bool {
	return g.skipped == r.turn || g.top != nil && g.top.skipped == r.turn
}

// wakened tells a container of a pod that was idle until when nothing ran in it.
func (g *Group) wakened() {
	if g.top == nil {
		return
	}
	if quiet := g.top.Quiet.Add(-g.top.Disk.Period); quiet.After(g.Quiet) {
		g.Quiet = quiet
	}
	g.top = nil
}
