package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// undisturbed is how long a value of ours must stay in the file for its back-off to end.
const undisturbed, undisturbedCPUs = 20 * time.Second, 2 * maxCPUsGap

// See records an observation of a file, and says what happened to the file since the last one.
func (l *Ledger) See(now time.Time, key plan.Key, s Sight) Event {
	e := l.entries[key]
	if key.Knob.OfTasks() {
		l.seeTasks(now, key, s.Tasks)
		return None
	}
	if e == nil {
		e = &Entry{State: Untouched, Baseline: s.InFile, Since: now, knob: key.Knob, period: s.Period, scale: 1}
		l.entries[key] = e
		if s.Declared != "" && s.Declared != s.InFile && s.Next != s.InFile {
			e.Baseline = s.Declared
			e.leave(now, Deviation)
		}
		e.InFile = s.InFile
		return None
	}
	scaled := e.rescale(s)
	s.Declared = e.exact(s)
	e.recent = [2]plan.Value{e.seen, e.ourValue()}
	e.adjust(s)
	e.endBackoff(now, s.InFile)
	event := cmp.Or(e.see(now, s), scaled)
	e.seen = e.ourValue()
	e.read(now, s.InFile)
	return event
}

// seeTasks records the values of the tasks of a group.
func (l *Ledger) seeTasks(now time.Time, key plan.Key, tasks map[plan.Value]int) {
	e := l.entries[key]
	if e == nil {
		e = &Entry{State: Untouched, Baseline: key.Knob.Unset(), knob: key.Knob}
		l.entries[key] = e
	}
	e.tasks = maps.Clone(tasks)
	e.endBackoff(now, e.ofTasks())
	e.read(now, e.ofTasks())
}

// ofTasks is the value of a group's tasks: the intended one if all tasks have it, else that of a task that does not.
func (e *Entry) ofTasks() plan.Value {
	for _, v := range []plan.Value{e.Baseline, e.Wrote} {
		if v != e.Intended && e.tasks[v] > 0 {
			return v
		}
	}
	return e.Intended
}

// read records the value of a file.
func (e *Entry) read(now time.Time, held plan.Value) {
	if held != e.InFile || e.Unread {
		e.Since = now
	}
	if held == e.Intended {
		e.Problem = ""
	}
	e.InFile, e.Unread = held, false
}

// Unread records that a file could not be read. The entry's state does not change.
func (l *Ledger) Unread(key plan.Key) {
	if e := l.entries[key]; e != nil {
		e.Unread = true
	}
}

// exact is the declared value without its rounding: the baseline, where that rounds to the same. A declared value that
// another program has written to the file is exact itself.
func (e *Entry) exact(s Sight) plan.Value {
	if !s.Rounded || s.Declared == e.Baseline || s.InFile == s.Declared && s.InFile != e.ourValue() {
		return s.Declared
	}
	declared, err1 := s.Declared.Time()
	baseline, err2 := e.Baseline.Time()
	if err1 != nil || err2 != nil || baseline == cpu.Unlimited || declared == cpu.Unlimited ||
		workload.RoundedUp(cpu.Bandwidth{Quota: baseline, Period: s.Period}) !=
			workload.RoundedUp(cpu.Bandwidth{Quota: declared, Period: s.Period}) {
		return s.Declared
	}
	return e.Baseline
}

// adjust adopts changes of our value by the kernel or its owner that conflict with nothing.
func (e *Entry) adjust(s Sight) {
	switch {
	case !e.Ours() || s.InFile == e.Wrote:
	case s.Sheds && s.InFile.Within(e.Wrote):
		e.Wrote = s.InFile
	case s.Follows:
		e.Baseline = s.InFile
	}
}

// endBackoff ends the back-off once the intended value has been in the file for long.
func (e *Entry) endBackoff(now time.Time, held plan.Value) {
	enough := undisturbed
	if e.knob.OfCPUSet() {
		enough = undisturbedCPUs
	}
	if e.State == Ours && held == e.InFile && held == e.Intended && now.Sub(e.Since) >= enough {
		e.Retry = plan.Backoff{}
	}
}

// see compares a sight with a known entry.
func (e *Entry) see(now time.Time, s Sight) Event {
	owners := s.Declared != "" && s.InFile == s.Declared || s.Next != "" && s.InFile == s.Next
	switch {
	case e.isBack(now, s.InFile), e.isDivided(s.InFile):
		e.State, e.Wrote = Ours, s.InFile
		return CameBack
	case e.State == Foreign:
		if owners || s.Declared == "" && s.InFile == e.Baseline {
			return e.resized(s.InFile, plan.Backoff{})
		}
		return e.reportForeign(now)
	case e.Ours() && s.InFile == e.Wrote && s.InFile == s.Next && s.InFile != s.Declared:
		e.State = Provisional
		return None
	case e.Ours() && s.InFile == e.Wrote:
		e.State = Ours
		return e.redeclared(s)
	case e.Ours() && s.InFile == e.Baseline:
		e.State = Untouched
		e.Resets++
		e.delay(&e.Retry, now)
		return Reset
	case e.State == Untouched && s.Sheds && s.InFile.Within(e.Baseline):
		return None
	case e.State == Lost && (owners || s.InFile == e.Baseline):
		return e.resized(s.InFile, e.Retry)
	case e.State == Lost && s.InFile == e.InFile:
		return e.stillLost(s)
	case owners || !e.Ours() && s.Declared == "":
		e.settled()
		if s.InFile != e.Baseline {
			return e.resized(s.InFile, e.Retry)
		}
		return None
	case e.Ours() || s.InFile != e.Baseline:
		e.leave(now, Overrode)
		return None
	}
	return e.late(now, s)
}

// isBack says whether the file holds a burst of ours that we had replaced.
func (e *Entry) isBack(now time.Time, held plan.Value) bool {
	return held == e.replaced && held != e.ourValue() && held != e.Baseline && now.Sub(e.wroteAt) < backWithin
}

// isDivided says whether the file holds our burst divided by 1000: so do some kernels when its owner writes cpu.max
// (apply/companion.go). Below a microsecond that is 0, which any program may have written.
func (e *Entry) isDivided(held plan.Value) bool {
	if e.knob != plan.Burst || !e.Ours() || held == e.Wrote { // the usual case, of which there are many in each turn
		return false
	}
	burst, err := e.Wrote.Time()
	divided := (burst / 1000).Truncate(time.Microsecond)
	return err == nil && divided > 0 && held == plan.Time(divided)
}

// late handles a file that holds the baseline while its owner declares another value.
func (e *Entry) late(now time.Time, s Sight) Event {
	switch {
	case s.Next != "": // the owner is resizing
		e.settled()
	case e.State != Late:
		e.State, e.since = Late, now
	case now.Sub(e.since) >= lostAfter:
		e.State, e.Baseline, e.undone = Lost, s.Declared, e.refilled.After(e.since.Add(-undoneBefore))
		return WasLost
	}
	return None
}

// stillLost follows changes of the declared value while the owner's write is lost.
func (e *Entry) stillLost(s Sight) Event {
	e.Baseline = s.Declared
	if s.Declared == "" || s.Next != "" { // it is no longer declared, or the owner is resizing
		e.State, e.Baseline = Untouched, s.InFile
	}
	return None
}

// settled ends the state Late.
func (e *Entry) settled() {
	if e.State == Late {
		e.State = Untouched
	}
}

// resized makes the value that the owner wrote the new baseline.
func (e *Entry) resized(held plan.Value, retry plan.Backoff) Event {
	*e = Entry{State: Untouched, Baseline: held, Retry: retry, Since: e.Since, Resets: e.Resets, Refused: e.Refused,
		refilled: e.refilled, InFile: e.InFile, Intended: e.Intended, By: e.By, knob: e.knob,
		seen: e.seen, recent: e.recent, period: e.period, scale: e.scale}
	return Resized
}

// leave leaves the file to another writer.
func (e *Entry) leave(now time.Time, report Event) {
	e.State, e.since, e.report = Foreign, now, report
}

// reportForeign reports a foreign value, once.
func (e *Entry) reportForeign(now time.Time) Event {
	if e.report == None || now.Sub(e.since) < settling {
		return None
	}
	event := e.report
	e.report = None
	return event
}

// redeclared follows changes of the declared value while a value of ours is in the file.
func (e *Entry) redeclared(s Sight) Event {
	if s.Declared == "" || s.Declared == e.Baseline {
		return None
	}
	if s.Declared == s.InFile {
		return e.resized(s.InFile, e.Retry)
	}
	e.Baseline = s.Declared
	return Rebased
}

// Entry returns a copy of the entry of a file; false: there is none.
func (l *Ledger) Entry(key plan.Key) (Entry, bool) {
	e := l.entries[key]
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// Undone says whether a refill may have undone the owner's lost write.
func (e *Entry) Undone() bool { return e.State == Lost && e.undone }

// Due is when the state Late ends at the latest; zero: the state is another.
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
	case e.knob.OfBandwidth() && !e.Return.Ready(now):
		return plan.Waiting
	case e.Retry.Ready(now):
		return plan.Free
	case e.knob.OfBandwidth():
		return plan.NoRaise
	}
	return plan.Waiting
}

// Adopt records a value of ours that this ledger did not plan: a former agent wrote it, or the kernel copied it.
func (l *Ledger) Adopt(key plan.Key, baseline, held plan.Value) {
	e := &Entry{State: Untouched, Baseline: baseline, Wrote: held, InFile: held, knob: key.Knob}
	if held != baseline {
		e.State = Ours
	}
	l.entries[key] = e
}

// Claim assigns a file to the decider with this priority, which then restores it.
func (l *Ledger) Claim(key plan.Key, by plan.Priority) {
	if e := l.entries[key]; e != nil {
		e.By = by
	}
}

// Drop removes entries of a group that is gone.
func (l *Ledger) Drop(id workload.ID, knobs ...plan.Knob) {
	for _, knob := range knobs {
		delete(l.entries, plan.Key{ID: id, Knob: knob})
	}
}

// Copied says whether a value of ours was in a file at the previous sight or since. A group made below with a copy of
// that value then has it from us. The baseline is that of the file.
func (l *Ledger) Copied(key plan.Key, value plan.Value) (baseline plan.Value, copied bool) {
	e := l.entries[key]
	if e == nil || value == "" || !(e.Ours() && value == e.Wrote) && !slices.Contains(e.recent[:], value) {
		return "", false
	}
	return e.Baseline, true
}

// Clone is an independent copy of the entries selected by of.
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
