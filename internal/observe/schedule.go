package observe

import "time"

const (
	// LookEvery is how often a group is read whose use may be near its limit. It differs from the usual period of 100
	// ms, so that readings sweep over the period and find its begin (sample.Phase). With throttle events, the
	// interval of a longer period is nine tenths of it.
	LookEvery = 90 * time.Millisecond
	// CappedEvery is how often a group is read that is throttled and can get nothing more: the readings only find when
	// its demand falls. Groups with this interval or a longer one are read at its multiples: they share turns.
	CappedEvery = 5 * LookEvery
	// followEvery is how often a pod is read whose quota only follows its containers.
	followEvery = 3 * CappedEvery
	// IdleEvery is how often a group is read for which there is nothing to decide, and quietEvery with throttle events:
	// then readings only update the totals.
	IdleEvery  = time.Second
	quietEvery = 30 * time.Second
	// glanceEvery is how often groups without a limit, which nothing else shows, are read for who looks all the time.
	glanceEvery = 5 * time.Second
	// leastGap is how soon after a reading the next one may be.
	leastGap = LookEvery / 9
)

// filesEvery is how often limit files are read although inotify reports no write. With throttle events it is
// raisedEvery for a group that is raised or throttled, and rarelyEvery for others: each event carries the limit.
const (
	filesEvery  = 2 * time.Second
	raisedEvery = 10 * time.Second
	rarelyEvery = time.Minute
)

// Interval is how long the group may go without a reading.
func (r *Reader) Interval(g *Group) time.Duration {
	if !g.Class.Burstable() || g.OwnCPUs { // the guard needs its use (policy/guard.go)
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
	case !r.Subscribed:
		return LookEvery
	case g.Suppressed && g.Throttled && !g.Bounded:
		return CappedEvery
	}
	return max(LookEvery, g.Disk.Period*9/10)
}

// reread is how long a reading of a group's limit files stays valid. A group without processes gets them soon after it
// was made, or it is empty for long.
func (r *Reader) reread(now time.Time, g *Group) time.Duration {
	switch {
	case !r.Subscribed || !g.Class.Burstable():
		return filesEvery
	case g.Watched || g.Raised:
		return raisedEvery
	case !g.Ready:
		return min(max(now.Sub(g.Since)/4, IdleEvery), rarelyEvery)
	}
	return rarelyEvery
}

// InStep is when a group that was read now is due: after d, or slightly earlier, at an instant common to all groups. So
// a group that was read at another instant is in step again afterwards, and groups share turns.
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

// Schedule sets when the groups that were read are due again, or the time of sooner if that is earlier, and returns the
// earliest due time. Of thousands of idle groups it touches none.
func (r *Reader) Schedule(now time.Time, sooner func(*Group) time.Time) time.Time {
	next := r.idleDue
	for i := 0; i < len(r.visited); i++ { // an answer meanwhile makes it longer
		r.Yield()
		g := r.visited[i]
		g.answered = g.answered && now.Sub(g.moved) < keptOpen
		r.keepOpen(g, g.answered || r.Interval(g) <= CappedEvery && g.top == nil)
		if g.Looked {
			g.Due = r.InStep(now, r.Interval(g))
		}
		if g.skipped != r.turn { // of what is idle nothing was decided
			if at := sooner(g); !at.IsZero() && at.Before(g.Due) {
				g.Due = at
			}
		}
		if g.Due.Before(next) {
			next = g.Due
		}
	}
	return next
}

// StaleAll makes the next turn read all files of all groups.
func (r *Reader) StaleAll(now time.Time) {
	for _, g := range r.groups {
		g.Stale(now)
	}
}

// DueAll makes the next turn read every group, including those of idle pods.
func (r *Reader) DueAll() {
	for _, g := range r.groups {
		g.Due = time.Time{}
		g.MarkDue()
	}
}

// Inodes returns the inodes of all groups.
func (r *Reader) Inodes() []uint64 {
	list := make([]uint64, 0, len(r.groups))
	for id := range r.groups {
		list = append(list, id.Inode)
	}
	return list
}

// Refresh makes the next turn read every group; of an idle pod only the pod's own counters. Without all it is every
// group that has no limit. It does nothing, and says so, soon after the last time.
func (r *Reader) Refresh(now time.Time, all bool) bool {
	every := IdleEvery
	if !all {
		every = glanceEvery
	}
	if r.turn == 0 || now.Sub(r.Refreshed) < every {
		return false
	}
	r.Refreshed, r.all = now, all
	for _, g := range r.groups {
		if all || !g.Disk.Limited() {
			g.Due = time.Time{}
		}
	}
	return true
}

// The files of a group that is read often stay open, because opening a file takes several times as long as reading it.
// So do those of a group whose throttle was answered, until it has been idle for keptOpen: the next answer reads them
// before it refills. Of an idle group, only the file whose write ended the last throttle stays open. There are never
// more open files than groups, or than fewFiles, half a megabyte of the kernel's, where these are fewer.
const fewFiles, keptOpen = 512, time.Minute / 2

// Answered keeps the files of a group open whose throttle is answered.
func (r *Reader) Answered(g *Group) {
	g.answered = true
	r.keepOpen(g, true)
}

// keepOpen keeps the files of a group open from now on, or no longer.
func (r *Reader) keepOpen(g *Group, open bool) {
	if g.open == open {
		return
	}
	g.open = open
	if open {
		r.Tree.KeepOpen(g.Path)
	} else {
		r.Tree.CloseFiles(g.Path)
	}
}
