package ledger

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"plimsoll/internal/plan"
)

// notIntended is why a baseline is put back.
const notIntended = "no longer asked for"

// Want is what one decider wants of files: what they are to hold, and the files whose baseline goes back where it intends
// nothing; nil where the decider was not asked.
type Want struct {
	Intents []plan.Intent
	Of      func(plan.Key) bool
}

// PlanAll makes changes of what all deciders want. Restores come first: a weight cannot be put back under the cpu.idle that
// comes in its place.
func (l *Ledger) PlanAll(now time.Time, wants ...Want) []plan.Change {
	var changes []plan.Change
	var intents []plan.Intent
	for _, w := range wants {
		if w.Of != nil {
			changes = append(changes, l.Restores(now, w.Intents, w.Of)...)
		}
		intents = append(intents, w.Intents...)
	}
	return append(changes, l.Plan(now, intents)...)
}

// Plan makes changes of intents: what differs from what the file holds, and may be written now. An intent for the baseline of a
// file whose owner's write was lost is a repair.
func (l *Ledger) Plan(now time.Time, intents []plan.Intent) []plan.Change {
	changes := make([]plan.Change, 0, len(intents))
	intents = slices.Clone(intents)
	slices.SortStableFunc(intents, func(x, y plan.Intent) int { return int(y.Priority - x.Priority) }) // who claims a file comes first
	for _, in := range intents {
		e := l.entries[in.Key]
		if e == nil || in.Priority < e.By {
			continue
		}
		e.By = in.Priority
		if e.Leaving { // what came of putting it back says nothing of what is intended now
			e.Leaving, e.Problem = false, ""
		}
		e.intend(in.Key, in.Value)
		if e.Blocked(now) != plan.Free || in.Value == e.Held && !in.Refill {
			continue
		}
		if in.Knob.OfTasks() { // some may take it where the kernel refuses it for others
			e.State = Ours
		}
		back := in.Value == e.Baseline
		changes = append(changes, plan.Change{Cgroup: in.ID, Knob: in.Knob, From: e.Held, To: in.Value, Min: in.Min, Max: in.Max, Why: in.Why,
			Refill: in.Refill, Restore: in.Release && back && e.State != Lost, Repair: back && e.State == Lost && !in.Refill})
	}
	return changes
}

// Restores makes changes that put the baseline back, in those of these files where a value of ours stands that nobody intends.
// It is tried until it is done, ever more rarely where the kernel refuses it.
func (l *Ledger) Restores(now time.Time, intents []plan.Intent, of func(plan.Key) bool) []plan.Change {
	intended := map[plan.Key]bool{}
	for _, in := range intents {
		intended[in.Key] = true
	}
	identities := len(l.Ours(func(k plan.Key) bool { return k.Knob == plan.Identity })) > 0
	var changes []plan.Change
	for _, key := range l.Ours(of) {
		e := l.entries[key]
		if intended[key] {
			continue
		}
		if !e.Leaving {
			e.Leaving, e.Problem, e.Return = true, "", Backoff{}
		}
		e.intend(key, e.Baseline)
		gate := key.Knob == plan.IdentitySysctl && identities // without it no identity can be put back
		if e.State == Ours && !e.Unread && e.Return.Ready(now) && !gate {
			changes = append(changes, plan.Change{Cgroup: key.ID, Knob: key.Knob, From: e.Held, To: e.Baseline, Why: notIntended, Restore: true})
		}
	}
	return changes
}

// intend books what the file is to hold.
func (e *Entry) intend(key plan.Key, value plan.Value) {
	if key.Knob.OfTasks() {
		if value != e.Intended {
			e.Wrote = e.Intended // some tasks may hold it
		}
		e.Intended = value
		e.Held = e.ofTasks()
	}
	e.Intended = value
}

// Ours lists the files of these in which a value of ours stands, by path and knob.
func (l *Ledger) Ours(of func(plan.Key) bool) []plan.Key {
	return l.list(func(key plan.Key, e *Entry) bool { return e.Ours() && of(key) })
}

// Known lists the files of these of which something is known, by path and knob.
func (l *Ledger) Known(of func(plan.Key) bool) []plan.Key {
	return l.list(func(key plan.Key, _ *Entry) bool { return of(key) })
}

// Claimed lists the files that intents of a priority claim, by path and knob.
func (l *Ledger) Claimed(by plan.Priority) []plan.Key {
	return l.list(func(_ plan.Key, e *Entry) bool { return e.By == by })
}

func (l *Ledger) list(of func(plan.Key, *Entry) bool) []plan.Key {
	var list []plan.Key
	for key, e := range l.entries {
		if of(key, e) {
			list = append(list, key)
		}
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		return a.Path < b.Path || a.Path == b.Path && (a.Knob < b.Knob || a.Knob == b.Knob && a.Inode < b.Inode)
	})
	return list
}

// Learn books what became of changes, the first of which was begun at a time.
func (l *Ledger) Learn(begun time.Time, results []plan.Result) {
	for _, r := range results {
		e := l.entries[plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}]
		if e == nil {
			continue
		}
		switch r.Outcome {
		case plan.Applied, plan.Clamped:
			l.took(begun, e, r)
		case plan.Refused, plan.Trampled:
			switch {
			case e.Leaving:
				e.Return.hit(begun, e.knob)
			case r.Outcome == plan.Refused || e.Problem != "": // one write of another program says nothing of the next one
				e.Retry.hit(begun, e.knob)
			}
			e.Refused++
			e.Problem = fmt.Sprintf("%s: %s", r.Outcome, r.Err)
		case plan.Skipped:
			if r.Change.Restore && r.InForce != "" { // there was nothing of ours
				l.took(begun, e, r)
			}
		}
	}
}

// took books a value that the kernel took.
func (l *Ledger) took(begun time.Time, e *Entry, r plan.Result) {
	e.Problem = ""
	if r.Change.Refill {
		if quota := l.entries[plan.Key{ID: r.Change.Cgroup, Knob: plan.Quota}]; quota != nil {
			quota.refilled = begun
		}
	}
	unread := r.InForce == "" && r.Change.To != ""
	if unread || r.Change.Repair { // a repaired value is the owner's, and seen as such
		return
	}
	if e.Held != r.InForce {
		e.Since = begun
	}
	e.Wrote, e.Held = r.InForce, r.InForce
	e.State = Ours
	if r.Change.Knob.OfTasks() {
		e.tasks = map[plan.Value]int{r.InForce: 1}
	}
	if r.Outcome == plan.Clamped && !r.Change.Restore { // what is intended is asked for once in a while
		e.Retry.hit(begun, e.knob)
	}
	if r.InForce == e.Baseline || r.Change.Restore {
		e.State, e.Leaving = Untouched, false
	}
}

// Backoff is that of a file which another program writes too, or whose write the kernel refuses.
type Backoff struct{ plan.Backoff }

// Of CPUs the first gap is longer than the kubelet's reconcile period (10 s, cpuManagerReconcilePeriod), so that one who writes
// in each of these is met ever more rarely.
const (
	firstGap, maxGap         = time.Second, time.Minute
	firstCPUsGap, maxCPUsGap = 15 * time.Second, 10 * time.Minute
)

func ofCPUs(knob plan.Knob) bool {
	return knob == plan.CPUs || knob == plan.Exclusive || knob == plan.Partition
}

func (b *Backoff) hit(now time.Time, knob plan.Knob) {
	if ofCPUs(knob) {
		b.Hit(now, firstCPUsGap, maxCPUsGap)
		return
	}
	b.Hit(now, firstGap, maxGap)
}
