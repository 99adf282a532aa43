package apply

import (
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Owners' writes that a refill may undo.
//
// Problem: a write of the burst reads the quota before it takes the mutex (kernel/sched/core.c, tg_set_cfs_burst), and then
// sets both. A quota that its owner writes in between is set back, and the owner's write has succeeded.
//
// Approach: where a group may be refilled, inotify tells of writes to its quota file, and after each refill the quota is read.
// A write that was made while there was a refill, and after which the quota is what it was before it, was undone. All of it
// comes after the refill's own write, so that a throttle does not wait for it. A raise of ours is seen as any other write: one
// that is reported, and another value.
//
// A group whose limit nobody declares is watched from when the agent subscribes to its throttle events (ExpectRefills), before
// its first refill. A group with a declared limit is watched from its first refill on: there the declared limit shows also
// the write that this refill undid (policy/undone.go).
//
// Known limits: the first refill is not covered of a group that gets its first quota after it was named, of one of many that are
// named at once (watchAtOnce), and of one for which there is no room: maxWatched groups are watched, and a group that was
// refilled takes the place of one that was not, or was refilled longest ago. An owner that writes the very value that
// stands there is taken for one whose write was undone, where that coincides with a refill and nobody declares the limit
// (agent/undone.go). Of several writes between two readings only the last one is judged, and of an owner that keeps the
// file open none before it closes it.

// maxWatched bounds the groups whose quota files are watched: each takes an inotify watch, and what pins it in memory.
const maxWatched = 256

// watchAtOnce bounds the groups whose watches begin in one turn: to open and read a file takes about 15 µs, and throttle events
// wait for the turn.
const watchAtOnce = 8

// lateness is how long after a refill the news of a write may come that it has undone: inotify tells of it when the writer has
// come back from the kernel's function that sets it and closes the file, and it may be preempted before. newsAfter is how long
// that of a write may come whose value was seen: it is longer, for that is no case.
const lateness, newsAfter = 30 * time.Millisecond, time.Second

// Notifier tells of writes to the quota files of groups (cgroup.Notify).
type Notifier interface {
	Watch(group string) error
	Unwatch(group string)
	Writes() (counts map[string]int, lost bool)
}

// Undone is a write of a quota by its owner that may have been undone by a refill.
type Undone struct {
	ID   workload.ID
	Held plan.Value // what is in the file, and did before
	At   time.Time  // when it was found
}

// quotas is what is known of the quotas of groups that were refilled.
type quotas struct {
	notify   Notifier // nil: nobody looks
	groups   map[string]*quota
	expected []workload.ID          // groups to watch before they are refilled
	refilled map[string]workload.ID // and not looked at since
	found    []Undone
	err      error // the last reason why a group is not watched
}

// quota is that of one group.
type quota struct {
	id          workload.ID
	held        plan.Value
	refilled    time.Time // last; zero: never
	racing      bool      // a write that is reported now may have raced with a refill
	changed     time.Time // when another value was seen last
	unconfirmed int       // values that were seen, and the news of whose writes is to come
}

// Watching has the writer look for writes that its refills undo.
func (w *Writer) Watching(n Notifier) *Writer {
	w.quotas = quotas{notify: n, groups: map[string]*quota{}, refilled: map[string]workload.ID{}}
	return w
}

// Undone returns the owners' writes that were found undone since the last call, and why a group cannot be watched.
func (w *Writer) Undone() ([]Undone, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.quotas
	if len(q.groups) > 0 {
		w.judgeQuotas()
	}
	w.watchExpected()
	found, err := q.found, q.err
	q.found, q.err = nil, nil
	return found, err
}

// ExpectRefills names all groups that may be refilled from now on. Those whose limit nobody declares are watched before the first
// refill, a few now and in each call of Undone. A group that is in neither list is watched no more.
func (w *Writer) ExpectRefills(undeclared, declared []workload.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.quotas
	if q.notify == nil {
		return
	}
	named := make(map[workload.ID]bool, len(undeclared)+len(declared))
	for _, id := range slices.Concat(undeclared, declared) {
		named[id] = true
	}
	for path, g := range q.groups {
		if !named[g.id] {
			q.forget(path)
		}
	}
	q.expected = slices.DeleteFunc(slices.Clone(undeclared), func(id workload.ID) bool { return q.groups[id.Path] != nil })
	w.watchExpected()
}

// watchExpected watches the next few groups that are expected to be refilled, as long as there is room. A group without a quota
// is never refilled and takes no room. One whose file cannot be watched is left to its first refill, which says why.
func (w *Writer) watchExpected() {
	q := &w.quotas
	for range min(watchAtOnce, len(q.expected), maxWatched-len(q.groups)) {
		id := q.expected[0]
		q.expected = q.expected[1:]
		if q.groups[id.Path] != nil || q.notify.Watch(id.Path) != nil {
			continue
		}
		held, err := w.look(id, plan.Quota) // after the watch has begun: a write that is not reported is in it
		if err != nil || held == plan.Time(cpu.Unlimited) {
			q.notify.Unwatch(id.Path)
			continue
		}
		q.groups[id.Path] = &quota{id: id, held: held}
	}
}

// lookAfter looks at the quotas of the groups that were refilled, when all of a turn's writes are made.
func (w *Writer) lookAfter() {
	q := &w.quotas
	if len(q.refilled) == 0 {
		return
	}
	now := w.now()
	for path, id := range q.refilled {
		g := q.groups[path]
		if g == nil || g.id != id {
			if g = q.watch(id, now); g == nil {
				continue
			}
			g.held, _ = Read(w.tree, path, plan.Quota)
		}
		g.refilled, g.racing = now, true
	}
	w.judgeQuotas()
	clear(q.refilled)
}

// watch watches one more group, in place of the one that was refilled longest ago if there are too many.
func (q *quotas) watch(id workload.ID, now time.Time) *quota {
	if len(q.groups) >= maxWatched {
		var oldest *quota
		for _, g := range q.groups {
			if oldest == nil || g.refilled.Before(oldest.refilled) {
				oldest = g
			}
		}
		q.forget(oldest.id.Path)
	}
	if err := q.notify.Watch(id.Path); err != nil {
		q.err = err
		q.forget(id.Path)
		return nil
	}
	g := &quota{id: id, refilled: now}
	q.groups[id.Path] = g
	return g
}

func (q *quotas) forget(path string) {
	q.notify.Unwatch(path)
	delete(q.groups, path)
}

// judgeQuotas judges the writes that inotify tells of. The groups that have just been refilled are read in any case.
func (w *Writer) judgeQuotas() {
	q, now := &w.quotas, w.now()
	counts, lost := q.notify.Writes()
	for path, g := range q.groups {
		if now.Sub(g.changed) > newsAfter {
			g.unconfirmed = 0
		}
		n := counts[path]
		if lost { // by the queue's overflow
			n, g.racing, g.unconfirmed = 0, false, 0
		}
		if _, refilled := q.refilled[path]; n == 0 && !refilled {
			continue
		}
		held, err := Read(w.tree, path, plan.Quota)
		if err != nil {
			q.forget(path)
			continue
		}
		if g.judge(now, n, held) {
			q.found = append(q.found, Undone{g.id, held, now})
		}
	}
	for _, g := range q.groups { // what was reported now is the last that may have raced
		g.racing = g.racing && now.Sub(g.refilled) <= lateness
	}
}

// judge takes how many writes were reported since the last reading, and what is read now. It says whether one was undone.
func (g *quota) judge(now time.Time, writes int, held plan.Value) bool {
	changed, unconfirmed := held != g.held, g.unconfirmed
	if g.held = held; changed {
		unconfirmed, g.changed = unconfirmed+1, now
	}
	confirmed := min(writes, unconfirmed)
	g.unconfirmed = unconfirmed - confirmed
	return !changed && writes > confirmed && g.racing
}
