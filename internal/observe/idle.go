package observe

import (
	"math"
	"time"

	"plimsoll/internal/workload"
)

// A node has hundreds of containers, and most of them are idle at most times. CPU time used in a pod with a limit is
// charged to the pod too (kernel/sched/fair.c, update_curr and account_cfs_rq_runtime, for each level), which starts
// the pod's period timer, and nr_periods counts each expiry of that timer. So while the counters of a pod do not
// change, nothing runs in it, and its containers need not be read: one that begins to run is seen at the first reading
// after the pod's next expiry. The same is true of the counters of a container without a pod.
//
// With throttle events, a pod for which there is nothing to do may be skipped as idle whatever it uses: an event
// reports when its use reaches its limit.
//
// A CPU uses up the rest of its last slice, at most a millisecond (min_cfs_rq_runtime), before the timer starts.

const (
	// stillPeriods is for how many periods the counters must not have changed. A timer counts up to two more expiries
	// after the last use, and the timers of pod and containers are not in phase.
	stillPeriods = 3
	// PolledIdleAtMost is after how long all groups of an idle pod are read again. With throttle events it is
	// rarelyEvery, and longer the longer the pod has been idle.
	PolledIdleAtMost = 30 * time.Second
	// IdleAtMost is the longest time between readings of an idle pod with throttle events and inotify: then readings
	// only update the totals, and find what neither reported.
	IdleAtMost = 5 * time.Minute
	// sweepTurns is over how many turns at least the reading of all idle pods is spread: a turn that reads a thousand
	// pods takes a quarter of a second, in which no throttle is answered. sweepLeast pods may be read in any turn.
	sweepTurns = 30
	sweepLeast = 32
)

// skipsIdle says whether the pod at this place of the snapshot was idle in the previous turn and still is. Only its own
// counters are read, when they are due.
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
	if pod.Due.Before(r.idleDue) {
		r.idleDue = pod.Due
	}
	return true
}

// sweep says whether an idle pod may be read in this turn.
func (r *Reader) sweep() bool {
	r.sweeps--
	return r.sweeps >= 0
}

// sweepsIn is how many idle pods may be read in a turn over so many pods.
func (r *Reader) sweepsIn(pods int) int {
	if r.all || !r.Subscribed {
		return math.MaxInt
	}
	return max(sweepLeast, pods/sweepTurns)
}

// backOff is for how long an idle pod need not be read: as long as it has been idle already. Without throttle events
// there is no back-off.
func (r *Reader) backOff(now time.Time, pod *Group) time.Duration {
	if !r.Subscribed || pod.moved.IsZero() {
		return 0
	}
	return min(now.Sub(pod.moved), IdleAtMost)
}

// backOffIdle makes the next turns skip a pod that is idle and for which there is nothing to do. A container without a
// pod counts as its own pod.
func (r *Reader) backOffIdle(now time.Time, place int, p *workload.Pod) {
	pod := r.groups[p.ID]
	if p.Path == "" && len(p.Containers) == 1 {
		pod = r.groups[p.Containers[0].ID]
	}
	r.idlePods[place] = nil
	if !r.isIdle(now, pod) || !pod.Disk.Limited() && !r.Subscribed {
		return
	}
	most := PolledIdleAtMost
	if r.Subscribed {
		most = max(rarelyEvery, r.backOff(now, pod))
	}
	until, inside := pod.idleAtMost(most), p.IDs()[1:]
	for _, id := range inside {
		g := r.groups[id]
		if !r.isIdle(now, g) {
			return
		}
		if at := g.idleAtMost(most); at.Before(until) {
			until = at
		}
	}
	for _, id := range inside {
		r.groups[id].top = pod
	}
	pod.idleUntil, r.idlePods[place] = until, pod
}

// idleAtMost is until when a group may be skipped whose files may go unread for so long.
func (g *Group) idleAtMost(unread time.Duration) time.Time {
	if at := g.DiskAt.Add(unread); g.Retry.IsZero() || at.Before(g.Retry) {
		return at
	}
	return g.Retry
}

// isIdle says whether there is nothing to do for a group, and its counters have not changed recently.
func (r *Reader) isIdle(now time.Time, g *Group) bool {
	known := g != nil && g.Ready && !g.DiskAt.IsZero() && g.seen == r.turn
	stable := known && g.Stable && g.WhyPaused == "" && g.Class.Burstable()
	if !stable || r.Subscribed {
		return stable
	}
	return now.Sub(g.DiskAt) < filesEvery && now.Sub(g.moved) > stillPeriods*g.Disk.Period
}

// hasMoved says whether the counters of a group have changed since the last reading, or cannot be read.
func (r *Reader) hasMoved(g *Group) bool {
	r.Looks++
	last := g.Reading.Counters
	if !g.Disk.Limited() { // its period timer never runs: compare its usage
		usage, err := r.Tree.Usage(g.Path)
		return err != nil || usage != last.Usage
	}
	c, err := r.Tree.Stat(g.Path)
	c = c.Plus(r.Extra(g.Inode)) // as in the reading
	if !c.HasUsage {
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	}
	return err != nil || c != last
}

// Skipped says whether this turn skipped the group or its pod.
func (r *Reader) Skipped(g *Group) bool {
	return g.skipped == r.turn || g.top != nil && g.top.skipped == r.turn
}

// wakened ends the group's idle state, and derives from its pod until when it used no CPU.
func (g *Group) wakened() {
	if g.top == nil {
		return
	}
	if quiet := g.top.Quiet.Add(-g.top.Disk.Period); quiet.After(g.Quiet) {
		g.Quiet = quiet
	}
	g.top = nil
}
