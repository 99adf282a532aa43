package apply

import (
	"errors"
	"slices"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Restore restores the values that we overwrote, for the entries of the journal that the filter selects (nil: all). A
// value of ours is replaced by the declared limit where that is known, else by the original; a value that another
// program has written since stays. With toSpec a foreign value is replaced too, where the declared limit is known.
// Restoring all entries also removes the shield. Afterwards the journal has only the entries whose restore was refused:
// a second Restore changes nothing.
func (w *Writer) Restore(filter func(journal.Entry) bool, toSpec bool) []plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.putBack(filter, toSpec, lastWait)
}

// TryRestore is Restore without waiting for dying groups: the caller retries what is refused.
func (w *Writer) TryRestore(filter func(journal.Entry) bool) []plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.putBack(filter, false, 0)
}

func (w *Writer) putBack(filter func(journal.Entry) bool, toSpec bool, patience time.Duration) (results []plan.Result) {
	for _, wave := range []func(journal.Entry) bool{
		w.isDivided, // before a write of cpu.max divides the burst again, so that it cannot be recognized
		func(e journal.Entry) bool { return e.Knob != plan.Weight },
		func(e journal.Entry) bool { return e.Knob == plan.Weight }, // after idle, which locks it
	} {
		skip := func(e journal.Entry) bool { return filter != nil && !filter(e) || !wave(e) }
		results = append(results, w.restore(slices.DeleteFunc(w.journal.Entries(), skip), toSpec, patience)...)
	}
	results = append(results, w.awaitOwners(patience)...)
	if filter == nil {
		results = append(results, w.Unshield()...)
	}
	return results
}

func (w *Writer) restore(entries []journal.Entry, toSpec bool, patience time.Duration) (results []plan.Result) {
	var changes []plan.Change
	for _, e := range entries {
		c, r, write := w.examine(e, toSpec)
		switch {
		case write:
			changes = append(changes, c)
		case !e.Written() && (r.Outcome == plan.Skipped && r.Err == "" || r.Outcome == plan.Gone):
			// A claim without a write: there is nothing to report.
		default:
			results = append(results, r)
		}
	}
	plan.Order(changes)
	return append(results, w.persist(changes, toSpec, patience)...)
}

// persist carries out changes, and retries the refused ones as long as others succeed: a foreign value in a hierarchy
// can make any order wrong, and those whose values the kernel has scaled meanwhile. It waits for a dying group, longer
// each time, up to patience.
func (w *Writer) persist(changes []plan.Change, toSpec bool, patience time.Duration) (results []plan.Result) {
	wait := firstWait
	for {
		var refused []plan.Result
		again, scaled := []plan.Change(nil), false
		for _, c := range changes {
			for _, r := range w.family(c, toSpec) {
				_, claimed := w.journal.Entry(r.Change.Cgroup, r.Change.Knob)
				if claimed && (r.Outcome == plan.Refused || r.Outcome == plan.Trampled) {
					now := w.current(r.Change)
					refused, again, scaled = append(refused, r), append(again, now), scaled || now != r.Change
					continue
				}
				results = append(results, r)
			}
		}
		if len(again) == 0 {
			return results
		}
		if len(again) == len(changes) && !scaled {
			if wait > patience || !slices.ContainsFunc(again, w.waits) {
				return append(results, refused...)
			}
			w.Sleep(wait)
			wait *= 2
		}
		changes = again
	}
}

// How long a restore waits for dying groups: 10, 20, 40 ... 320 ms.
const (
	firstWait = 10 * time.Millisecond
	lastWait  = 320 * time.Millisecond
)

// waits says whether a change was probably refused because of a dying group.
func (w *Writer) waits(c plan.Change) bool {
	return c.Knob == plan.Quota && w.whyQuota(c) == dyingChild
}

// examine says whether an entry needs a write, and else makes its result.
func (w *Writer) examine(e journal.Entry, toSpec bool) (c plan.Change, r plan.Result, write bool) {
	if e.Knob.OfTasks() {
		return plan.Change{Cgroup: e.ID, Knob: e.Knob, From: e.Last, To: e.Knob.Unset(), Restore: true,
			Why: "restore the original value"}, r, true
	}
	e, held, err := w.lookAt(e)
	c = plan.Change{Cgroup: e.ID, Knob: e.Knob, To: w.attainable(e.Knob, e.Target(), "/"),
		Restore: true, Why: "restore the original value"}
	if e.Baseline != "" {
		c.Why = "restore the declared limit"
	}
	if _, idle := w.journal.Entry(e.ID, plan.Idle); idle && e.Knob == plan.Weight {
		return c, w.result(c, plan.Refused, "", errIdle), false
	}
	c.From = held
	switch {
	case isGone(err), errors.Is(err, errNoFile):
		return c, w.ended(c, plan.Gone, "", err), false
	case err != nil:
		return c, w.result(c, plan.Refused, "", w.explain(c, err)), false
	case held == c.To:
		return c, w.ended(c, plan.Skipped, held, nil), false
	case w.ours(e, held), toSpec && e.Baseline != "":
		return c, plan.Result{}, true
	case held == w.attainable(e.Knob, e.Original, "/"):
		return c, w.ended(c, plan.Skipped, held, nil), false
	}
	return c, w.ended(c, plan.Trampled, held, leftAlone(held)), false
}

// RestoreTo restores a knob that deviates from its declared limit, even without a journal entry: a foreign agent may
// have died with its value in the file. A caller that restores several knobs does so in plan.Order.
func (w *Writer) RestoreTo(id workload.ID, knob plan.Knob, value plan.Value, why string) plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := plan.Change{Cgroup: id, Knob: knob, From: value, To: value, Why: why, Restore: true}
	held, err := w.look(id, knob)
	if err == nil {
		c.From = held
		c, err = normal(c)
	}
	_, claimed := w.journal.Entry(id, knob)
	if err != nil || claimed || c.From == c.To {
		return w.one(c, true) // makes the result
	}
	e := w.ownClaim(c)
	e.Baseline = c.To
	if err := w.journal.Claim(e); err != nil {
		return w.result(c, plan.Refused, held, err)
	}
	return w.one(c, true)
}
