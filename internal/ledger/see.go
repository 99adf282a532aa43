package ledger

import (
	"maps"
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// undisturbed is how long a value of ours must stand for the next reset not to count as a quarrel with its owner.
const undisturbed, undisturbedCPUs = 20 * time.Second, 2 * maxCPUsGap

func patience(knob plan.Knob) time.Duration {
	if ofCPUs(knob) {
		return undisturbedCPUs
	}
	return undisturbed
}

// See books what a file holds, and says what became of it since the last sight.
func (l *Ledger) See(now time.Time, key plan.Key, s Sight) Event {
	e := l.entries[key]
	if key.Knob.OfTasks() {
		l.seeTasks(now, key, s.Tasks)
		return None
	}
	if e == nil {
		e = &Entry{State: Untouched, Baseline: s.Held, Since: now, knob: key.Knob}
		l.entries[key] = e
		if s.Declared != "" && s.Declared != s.Held && s.Next != s.Held {
			e.Baseline = s.Declared
			e.leave(now, Deviation)
		}
		e.Held, e.Declared = s.Held, s.Declared
		return None
	}
	e.recent = [2]plan.Value{e.seen, e.standing()}
	e.adjust(s)
	e.calm(now, s.Held)
	event := e.see(now, s)
	e.seen = e.standing()
	e.read(now, s.Held)
	e.Declared = s.Declared
	return event
}

// seeTasks books what the tasks of a group hold.
func (l *Ledger) seeTasks(now time.Time, key plan.Key, tasks map[plan.Value]int) {
	e := l.entries[key]
	if e == nil {
		e = &Entry{State: Untouched, Baseline: key.Knob.Unset(), knob: key.Knob}
		l.entries[key] = e
	}
	e.tasks = maps.Clone(tasks)
	e.calm(now, e.ofTasks())
	e.read(now, e.ofTasks())
}

// ofTasks is what the tasks of a group hold: what is intended where no task is left to be set, else what one of those holds.
func (e *Entry) ofTasks() plan.Value {
	for _, v := range []plan.Value{e.Baseline, e.Wrote} {
		if v != e.Intended && e.tasks[v] > 0 {
			return v
		}
	}
	return e.Intended
}

// read books what a file holds.
func (e *Entry) read(now time.Time, held plan.Value) {
	if held != e.Held || e.Unread {
		e.Since = now
	}
	if held == e.Intended {
		e.Problem = ""
	}
	e.Held, e.Unread = held, false
}

// Unread books that a file could not be read: whose value it holds is as it was.
func (l *Ledger) Unread(key plan.Key) {
	if e := l.entries[key]; e != nil {
		e.Unread = true
	}
}

// adjust takes what the kernel and an owner do to a value of ours without disputing it.
func (e *Entry) adjust(s Sight) {
	switch {
	case !e.Ours() || s.Held == e.Wrote:
	case s.Sheds && s.Held.Within(e.Wrote):
		e.Wrote = s.Held
	case s.Follows:
		e.Baseline = s.Held
	}
}

// calm ends the back-off once what is intended has stood for long.
func (e *Entry) calm(now time.Time, held plan.Value) {
	if e.State == Ours && held == e.Held && held == e.Intended && now.Sub(e.Since) >= patience(e.knob) {
		e.Retry = Backoff{}
	}
}

// see compares a sight with an entry that is known.
func (e *Entry) see(now time.Time, s Sight) Event {
	owners := s.Declared != "" && s.Held == s.Declared || s.Next != "" && s.Held == s.Next // the owner says so
	switch {
	case e.State == Foreign:
		if owners || s.Declared == "" && s.Held == e.Baseline {
			return e.resized(s.Held, Backoff{})
		}
		return e.tell(now)
	case e.Ours() && s.Held == e.Wrote && s.Held == s.Next && s.Held != s.Declared:
		e.State = Provisional
		return None
	case e.Ours() && s.Held == e.Wrote:
		e.State = Ours
		return e.redeclared(s)
	case e.Ours() && s.Held == e.Baseline:
		e.State = Untouched
		e.Resets++
		e.Retry.hit(now, e.knob)
		return Reset
	case e.State == Untouched && s.Sheds && s.Held.Within(e.Baseline):
		return None
	case e.State == Lost && (owners || s.Held == e.Baseline):
		return e.resized(s.Held, e.Retry)
	case e.State == Lost && s.Held == e.Held:
		return e.stillLost(s)
	case owners || !e.Ours() && s.Declared == "":
		e.settled()
		if s.Held != e.Baseline {
			return e.resized(s.Held, e.Retry)
		}
		return None
	case e.Ours() || s.Held != e.Baseline:
		e.leave(now, Overrode)
		return None
	}
	return e.late(now, s)
}

// late: the file holds the baseline, and its owner declares another value.
func (e *Entry) late(now time.Time, s Sight) Event {
	switch {
	case s.Next != "": // the owner is at work
		e.settled()
	case e.State != Late:
		e.State, e.since = Late, now
	case now.Sub(e.since) >= lostAfter:
		e.State, e.Baseline, e.undone = Lost, s.Declared, e.refilled.After(e.since.Add(-undoneBefore))
		return WasLost
	}
	return None
}

// stillLost follows what the owner says of a value that is lost.
func (e *Entry) stillLost(s Sight) Event {
	e.Baseline = s.Declared
	if s.Declared == "" || s.Next != "" { // nobody declares it any more, or the owner is at work
		e.State, e.Baseline = Untouched, s.Held
	}
	return None
}

// settled ends a lateness.
func (e *Entry) settled() {
	if e.State == Late {
		e.State = Untouched
	}
}

// resized takes what its owner wrote for the new baseline.
func (e *Entry) resized(held plan.Value, retry Backoff) Event {
	*e = Entry{State: Untouched, Baseline: held, Retry: retry, Since: e.Since, Resets: e.Resets, Refused: e.Refused, refilled: e.refilled, Held: e.Held,
		Intended: e.Intended, By: e.By, knob: e.knob, seen: e.seen, recent: e.recent}
	return Resized
}

// leave gives the file up to another writer.
func (e *Entry) leave(now time.Time, report Event) {
	e.State, e.since, e.report = Foreign, now, report
}

// tell reports a foreign value, once.
func (e *Entry) tell(now time.Time) Event {
	if e.report == None || now.Sub(e.since) < settling {
		return None
	}
	event := e.report
	e.report = None
	return event
}

// redeclared follows a declared value that changed while a value of ours is in the file.
func (e *Entry) redeclared(s Sight) Event {
	if s.Declared == "" || s.Declared == e.Baseline {
		return None
	}
	if s.Declared == s.Held {
		return e.resized(s.Held, e.Retry)
	}
	e.Baseline = s.Declared
	return Rebased
}

// Entry is a copy of what is known of a file; false: nothing.
func (l *Ledger) Entry(key plan.Key) (Entry, bool) {
	e := l.entries[key]
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// Undone says whether a refill may have undone the owner's write that is lost.
func (e *Entry) Undone() bool { return e.State == Lost && e.undone }

// Due is when a lateness ends at the latest; zero: there is none.
func (e *Entry) Due() time.Time {
	if e.State != Late {
		return time.Time{}
	}
	return e.since.Add(lostAfter)
}

// Blocked says why a file may not be written now.
func (e *Entry) Blocked(now time.Time) plan.Blocked {
	switch {
	case e.State == Foreign:
		return plan.Foreign
	case e.State == Provisional:
		return plan.Pending
	case e.Unread:
		return plan.Unread
	case !e.Retry.Ready(now):
		return plan.Waiting
	}
	return plan.Free
}

// Adopt books a value of ours that another agent, or nobody, has written: it stands in place of the baseline.
func (l *Ledger) Adopt(key plan.Key, baseline, stands plan.Value) {
	e := &Entry{State: Untouched, Baseline: baseline, Wrote: stands, Held: stands, knob: key.Knob}
	if stands != baseline {
		e.State = Ours
	}
	l.entries[key] = e
}

// Claim gives a file to the decider with a priority. Who claims it restores it.
func (l *Ledger) Claim(key plan.Key, by plan.Priority) {
	if e := l.entries[key]; e != nil {
		e.By = by
	}
}

// Drop forgets a group that is gone.
func (l *Ledger) Drop(id workload.ID, knobs ...plan.Knob) {
	for _, knob := range knobs {
		delete(l.entries, plan.Key{ID: id, Knob: knob})
	}
}

// Copied says whether a value stood in a file because of us at the last sight of it or since, so that a group which was made in
// that one with a copy of it has it from us. The baseline is the one of the file.
func (l *Ledger) Copied(key plan.Key, value plan.Value) (baseline plan.Value, copied bool) {
	e := l.entries[key]
	if e == nil || value == "" || !(e.Ours() && value == e.Wrote) && !slices.Contains(e.recent[:], value) {
		return "", false
	}
	return e.Baseline, true
}

// Clone is a ledger of its own that knows the same of these files.
func (l *Ledger) Clone(of func(plan.Key) bool) *Ledger {
	c := New()
	for key, e := range l.entries {
		if of(key) {
			one := *e
			c.entries[key] = &one
		}
	}
	return c
}
