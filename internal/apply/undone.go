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
// Problem: on a write of the burst, the kernel reads the quota before it takes the mutex (kernel/sched/core.c,
// tg_set_cfs_burst), and then sets both. A quota that its owner writes in between is set back, although the owner's
// write has succeeded.
//
// Approach: inotify reports writes to the quota files of groups that may be refilled, and after each refill the quota
// is read. A write during a refill after which the quota has not changed was undone. All of this happens after the
// refill's write, so that no throttle waits for it. A raise of ours appears as any other write: it is reported, and
// the value changes.
//
// A group without a declared limit is watched from the time when the agent subscribes to its throttle events
// (ExpectRefills), before its first refill. A group with a declared limit is watched from its first refill on: the
// declared limit also shows the write that this refill undid (ledger, State Lost). A container of Kubernetes has no
// declared limit before its pod's status names it, and is watched in between.
//
// Known limits: the first refill is not covered for a group that gets its first quota after ExpectRefills, for some of
// many groups named at once (watchAtOnce), and for a group beyond maxWatched: a refilled group replaces one that was
// not refilled, or was refilled longest ago. An owner that rewrites the current value during a refill is taken for one
// whose write was undone, where the limit is not declared (agent/effect.go). A burst that is set or restored can undo a
// write as well, and is not followed by a reading: only a declared limit shows that, also to the next agent
// (agent/handover.go). After an agent that has stopped in order, nothing does. Of several writes between two readings
// only the last one is judged. A write of an owner that keeps the file open is judged when it closes the file.

// maxWatched bounds the groups whose quota files are watched: each takes an inotify watch and pins an inode in memory.
const maxWatched = 256

// watchAtOnce bounds the watches that begin in one turn: opening and reading a file takes about 15 µs, and throttle
// events wait for the turn.
const watchAtOnce = 8

// lateness is how long after a refill inotify may report a write that the refill undid: inotify reports when the
// writer closes the file, and the writer may be preempted before. newsAfter is the same for a write whose value was
// seen. It is longer, because such a write needs no action.
const lateness, newsAfter = 30 * time.Millisecond, time.Second

// Notifier reports writes to the quota files of groups (cgroup.Notify).
type Notifier interface {
	Watch(group string) error
	Unwatch(group string)
	Writes() (counts map[string]int, lost bool)
}

// Undone is a write of a quota by its owner that may have been undone by a refill.
type Undone struct {
	ID     workload.ID
	InFile plan.Value // the value of the file, unchanged by the write
}

// quotas is the state of the watched quota files.
type quotas struct {
	notify   Notifier // nil: quota files are not watched
	groups   map[string]*quota
	expected []workload.ID          // groups to watch before they are refilled
	refilled map[string]workload.ID // groups refilled since their quotas were last read
	found    []Undone
	err      error // the last reason why a group could not be watched
}

// quota is the state of one watched file.
type quota struct {
	id          workload.ID
	held        plan.Value
	refilled    time.Time // the last refill; zero: none
	racing      bool      // a write that is reported now may have raced with a refill
	changed     time.Time // when the value was last seen to change
	unconfirmed int       // changes that were seen, and whose writes inotify has not reported yet
}

// Watching lets the writer find writes that its refills undo.
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

// ExpectRefills names all groups that may be refilled from now on. Those without a declared limit are watched before
// their first refill, a few from now on and a few more at each call of Undone. No longer watched are groups in
// neither list, and those declared by now that were not refilled: they would take the room of undeclared ones.
func (w *Writer) ExpectRefills(undeclared, declared []workload.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.quotas
	if q.notify == nil {
		return
	}
	keep := make(map[workload.ID]bool, len(undeclared)+len(declared))
	for _, id := range undeclared {
		keep[id] = true
	}
	for _, id := range declared {
		g := q.groups[id.Path]
		keep[id] = g != nil && !g.refilled.IsZero()
	}
	for path, g := range q.groups {
		if !keep[g.id] {
			q.forget(path)
		}
	}
	watched := func(id workload.ID) bool { return q.groups[id.Path] != nil }
	q.expected = slices.DeleteFunc(slices.Clone(undeclared), watched)
	w.watchExpected()
}

// watchExpected watches the next few expected groups, up to maxWatched. A group without a quota is never refilled and
// not watched. A group whose file cannot be watched is retried at its first refill, which reports the reason.
func (w *Writer) watchExpected() {
	q := &w.quotas
	for range min(watchAtOnce, len(q.expected), maxWatched-len(q.groups)) {
		id := q.expected[0]
		q.expected = q.expected[1:]
		if q.groups[id.Path] != nil || q.notify.Watch(id.Path) != nil {
			continue
		}
		held, err := w.look(id, plan.Quota) // after the watch has begun, so that no write is missed
		if err != nil || held == plan.Time(cpu.Unlimited) {
			q.notify.Unwatch(id.Path)
			continue
		}
		q.groups[id.Path] = &quota{id: id, held: held}
	}
}

// readRefilled reads the quotas of the groups that were refilled, after all writes of a turn.
func (w *Writer) readRefilled() {
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

// watch watches one more group, and beyond maxWatched drops the one that was refilled longest ago.
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

// judgeQuotas judges the writes that inotify reports. The groups that have just been refilled are read in any case.
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
			q.found = append(q.found, Undone{g.id, held})
		}
	}
	for _, g := range q.groups { // a write reported later cannot have raced with the refill
		g.racing = g.racing && now.Sub(g.refilled) <= lateness
	}
}

// judge says whether a write was undone, from the number of writes reported since the last reading and the value read
// now.
func (g *quota) judge(now time.Time, writes int, held plan.Value) bool {
	changed, unconfirmed := held != g.held, g.unconfirmed
	if g.held = held; changed {
		unconfirmed, g.changed = unconfirmed+1, now
	}
	confirmed := min(writes, unconfirmed)
	g.unconfirmed = unconfirmed - confirmed
	return !changed && writes > confirmed && g.racing
}
