package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/plan"
)

// notIntended is the reason of a restore.
const notIntended = "no longer requested"

// Want is the result of one decider: its intents, and in Of the files that it manages, whose baseline is restored where
// it has no intent. Of is nil where the decider did not decide.
type Want struct {
	Intents []plan.Intent
	Of      func(plan.Key) bool
}

// PlanAll makes the changes for all deciders. Restores come first: a weight cannot be restored once cpu.idle, which
// replaces it, is set.
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

// Plan makes changes of the intents whose value differs from the file's and may be written now. An intent for the
// baseline of a file whose owner's write was lost is a repair.
func (l *Ledger) Plan(now time.Time, intents []plan.Intent) []plan.Change {
	changes := make([]plan.Change, 0, len(intents))
	intents = slices.Clone(intents) // the highest priority first: it claims the file
	slices.SortStableFunc(intents, func(x, y plan.Intent) int { return int(y.Priority - x.Priority) })
	for _, in := range intents {
		e := l.entries[in.Key]
		if e == nil || in.Priority < e.By {
			continue
		}
		e.By = in.Priority
		if e.Leaving { // the problem of the restore does not apply to the new intent
			e.Leaving, e.Problem, e.Return = false, "", plan.Backoff{}
		}
		e.intend(in.Value)
		blocked := e.Blocked(now)
		if blocked == plan.NoRaise && !in.Refill && e.returns(e.InFile, in.Value) {
			blocked = plan.Free
		}
		if blocked != plan.Free || in.Value == e.InFile && !in.Refill {
			continue
		}
		if in.Knob.OfTasks() { // the write may succeed for some tasks and be refused for others
			e.State = Ours
		}
		back := in.Value == e.Baseline
		changes = append(changes, plan.Change{Cgroup: in.ID, Knob: in.Knob, From: e.InFile, To: in.Value, Min: in.Min,
			Max: in.Max, Quota: l.ownersQuota(in.Key), Why: in.Why, Refill: in.Refill,
			Restore: in.Release && back && e.State != Lost, Repair: back && e.State == Lost})
	}
	return changes
}

// ownersQuota is, for a burst, the quota that the group's owner has written; "": it is not known.
func (l *Ledger) ownersQuota(key plan.Key) plan.Value {
	if key.Knob != plan.Burst {
		return ""
	}
	if quota := l.entries[plan.Key{ID: key.ID, Knob: plan.Quota}]; quota != nil {
		return quota.Baseline
	}
	return ""
}

// Restores makes the changes that restore the baseline of files that hold a value of ours without an intent for it. A
// restore is retried until it succeeds, with back-off where the kernel refuses it.
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
			e.Leaving, e.Problem, e.Return = true, "", plan.Backoff{}
		}
		e.intend(e.Baseline)
		needed := key.Knob == plan.IdentitySysctl && identities // without it no identity can be restored
		if e.State == Ours && !e.Unread && e.Return.Ready(now) && !needed {
			changes = append(changes, plan.Change{Cgroup: key.ID, Knob: key.Knob, From: e.InFile, To: e.Baseline,
				Why: notIntended, Restore: true})
		}
	}
	return changes
}

// intend records the intended value.
func (e *Entry) intend(value plan.Value) {
	before := e.Intended
	e.Intended = value
	if !e.knob.OfTasks() {
		return
	}
	if value != before {
		e.Wrote = before // some tasks may have it
	}
	e.InFile = e.ofTasks()
}

// Ours lists the files selected by of that hold a value of ours, by path and knob.
func (l *Ledger) Ours(of func(plan.Key) bool) []plan.Key {
	return l.list(func(key plan.Key, e *Entry) bool { return e.Ours() && of(key) })
}

// Known lists the files selected by of that have an entry, by path and knob.
func (l *Ledger) Known(of func(plan.Key) bool) []plan.Key {
	return l.list(func(key plan.Key, _ *Entry) bool { return of(key) })
}

// Claimed lists the files that an intent of this priority claims, by path and knob.
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
	slices.SortFunc(list, func(a, b plan.Key) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Knob, b.Knob), cmp.Compare(a.Inode, b.Inode))
	})
	return list
}

// Learn records the results of changes. begun is when the first of them began.
func (l *Ledger) Learn(begun time.Time, results []plan.Result) {
	for _, r := range results {
		e := l.entries[r.Change.Key()]
		if e == nil {
			continue
		}
		switch r.Outcome {
		case plan.Applied, plan.Clamped:
			l.took(begun, e, r)
		case plan.Refused, plan.Trampled:
			again := r.Outcome == plan.Refused || e.Problem != "" // a single overwrite is no reason to back off
			switch {
			case e.Leaving, again && !r.Change.Refill && e.returns(r.Change.From, r.Change.To):
				e.delay(&e.Return, begun)
			case again:
				e.delay(&e.Retry, begun)
			}
			e.Refused++
			e.Problem = fmt.Sprintf("%s: %s", r.Outcome, r.Err)
		case plan.Skipped:
			if r.Change.Restore && r.InForce != "" { // the file held no value of ours
				l.took(begun, e, r)
			}
		}
	}
}

// took records a value that the kernel accepted.
func (l *Ledger) took(begun time.Time, e *Entry, r plan.Result) {
	e.Problem = ""
	if r.Change.Refill {
		if quota := l.entries[plan.Key{ID: r.Change.Cgroup, Knob: plan.Quota}]; quota != nil {
			quota.refilled = begun
		}
	}
	if r.Change.Repair { // a repaired value is the owner's; See finds it in the file
		return
	}
	wrote := cmp.Or(r.InForce, r.Change.To) // a value that could not be read back is in the file all the same
	if e.InFile != wrote {
		e.Since = begun
	}
	if e.knob == plan.Burst && e.Ours() && wrote != e.Wrote {
		e.replaced, e.wroteAt = e.Wrote, begun
	}
	e.Wrote, e.InFile = wrote, wrote
	e.State = Ours
	if r.Change.Knob.OfTasks() {
		e.tasks = map[plan.Value]int{wrote: 1}
	}
	if r.Outcome == plan.Clamped && !r.Change.Restore { // the intended value is retried with back-off
		e.delay(&e.Retry, begun)
	}
	if wrote == e.Baseline || r.Change.Restore {
		e.State, e.Leaving = Untouched, false
	}
}

// returns says whether a write of the quota or burst lowers it or restores its baseline. A raise that was refused does
// not delay such a write.
func (e *Entry) returns(from, to plan.Value) bool {
	higher, err1 := from.Time()
	lower, err2 := to.Time()
	return e.knob.OfBandwidth() && (to == e.Baseline || errors.Join(err1, err2) == nil && lower < higher)
}

// For CPUs the first gap is longer than the kubelet's reconcile period (10 s, cpuManagerReconcilePeriod), so that a
// kubelet that writes in every period makes the gap grow.
const (
	firstGap, maxGap         = time.Second, time.Minute
	firstCPUsGap, maxCPUsGap = 15 * time.Second, 10 * time.Minute
)

// delay delays writes of a file that another program writes too, or whose writes the kernel refuses.
func (e *Entry) delay(b *plan.Backoff, now time.Time) {
	if e.knob.OfCPUSet() {
		b.Hit(now, firstCPUsGap, maxCPUsGap)
		return
	}
	b.Hit(now, firstGap, maxGap)
}
