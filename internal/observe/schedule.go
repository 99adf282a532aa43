package observe

import (
	"time"
)

const (
	// LookEvery is how often a group is read whose limit may be near. It is not the usual period of 100 ms, so that readings
	// sweep over the period and find out when it begins (sample.Phase).
	LookEvery = 90 * time.Millisecond
	// CappedEvery is how often a group is read that is throttled though nothing more can be done for it: it only remains to see
	// when it wants less. A group that is read as seldom or less is read in steps of that, so that all such groups share their
	// turns.
	CappedEvery = 5 * LookEvery
	// followEvery is how often a pod is read whose quota only follows its containers'.
	followEvery = 3 * CappedEvery
	// IdleEvery is how often a group is read that nothing is to be decided for, and quietEvery how often where there are throttle
	// events: then reading only keeps the books.
	IdleEvery  = time.Second
	quietEvery = 30 * time.Second
	// leastGap is how soon after a reading the next one may be.
	leastGap = LookEvery / 9
)

// filesEvery is how often limit files are read although inotify reports no write. Where there are throttle events, and with each
// of the limit, it is raisedEvery for a group that is raised or throttled, and rarelyEvery for one that is idle.
const (
	filesEvery  = 2 * time.Second
	raisedEvery = 10 * time.Second
	rarelyEvery = time.Minute
)

// Interval is how long the group may go without a reading.
func (r *Reader) Interval(g *Group) time.Duration {
	if !g.Class.Burstable() { // the guard counts on what it uses (policy/guard.go)
		return IdleEvery
	}
	near := g.Strategy.Policy.Quota()
	if r.Subscribed {
		near = g.Watched || g.Ready && !g.Stable
	}
	switch {
	case !g.Disk.Limited() || !near && !g.Raised:
		if r.Subscribed {
			return quietEvery
		}
		return IdleEvery
	case !near:
		return followEvery
	case r.Subscribed && g.Suppressed && g.Throttled && !g.Bounded:
		return CappedEvery
	}
	return LookEvery
}

// reread is how long what was read of a group's limit files holds.
func (r *Reader) reread(g *Group) time.Duration {
	switch {
	case !r.Subscribed || !g.Class.Burstable():
		return filesEvery
	case g.Watched || g.Raised:
		return raisedEvery
	}
	return rarelyEvery
}

// InStep is when a group is due that was read now: after d, or a little earlier, at an instant that all groups have in common.
// So a group that is read at an instant of its own is in step again after it, and groups do not each ask for turns of their
// own.
func (r *Reader) InStep(now time.Time, d time.Duration) time.Time {
	step := LookEvery
	if d >= CappedEvery {
		step = CappedEvery
	}
	due := now.Add(d)
	due = due.Add(-(due.Sub(r.started) % step))
	if due.Sub(now) < leastGap {
		due = due.Add(step)
	}
	return due
}

// Schedule sets when the groups that were read are due again, unless sooner says that it is to be earlier, and returns the
// earliest time.
func (r *Reader) Schedule(now time.Time, sooner func(*Group) time.Time) time.Time {
	next := now.Add(IdleEvery)
	for _, g := range r.groups {
		if g.top != nil && g.top.skipped == r.turn {
			continue // due with its pod
		}
		if g.Looked {
			d := r.Interval(g)
			r.KeepOpen(g, d <= CappedEvery && g.top == nil)
			g.Due = r.InStep(now, d)
		}
		if at := sooner(g); !at.IsZero() && at.Before(g.Due) {
			g.Due = at
		}
		if g.Due.Before(next) {
			next = g.Due
		}
	}
	return next
}

// StaleAll has everything of all groups read in the next turn.
func (r *Reader) StaleAll(now time.Time) {
	for _, g := range r.groups {
		g.Stale(now)
	}
}

// DueAll has every group, also of idle pods, read in the next turn.
func (r *Reader) DueAll() {
	for _, g := range r.groups {
		g.Due = time.Time{}
		g.MarkDue()
	}
}

// Inodes are those of all groups.
func (r *Reader) Inodes() []uint64 {
	list := make([]uint64, 0, len(r.groups))
	for id := range r.groups {
		list = append(list, id.Inode)
	}
	return list
}

// Refresh has every group read in the next turn; an idle pod is only asked whether anything moved.
func (r *Reader) Refresh() {
	for _, g := range r.groups {
		g.Due = time.Time{}
	}
}
