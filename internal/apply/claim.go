package apply

import (
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
)

// Claims are on disk before the first write (package journal), and a disk may be slow. A raise waits for it. A refill,
// which needs no claim, does not: a turn claims what it is about to write in advance, all of it with one sync, while
// others may write.

// Claim claims what Do would claim for these changes, and waits for the disk once. It may be called during a Do for
// other changes. Do retries what could not be claimed, and reports why.
func (w *Writer) Claim(changes []plan.Change) {
	if w.Held() {
		return
	}
	var claims []journal.Entry
	for _, c := range changes {
		claims = append(claims, w.claims(c)...)
	}
	_ = w.journal.Claim(claims...)
}

// claims lists the claims that a change needs and the journal lacks, if the file holds what the decision saw.
func (w *Writer) claims(c plan.Change) []journal.Entry {
	c, err := normal(c)
	if err != nil || c.Restore || c.Refill || c.Repair {
		return nil
	}
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	if c.Knob.OfTasks() {
		if claimed || w.identify(c.Cgroup, c.Knob) != nil {
			return nil
		}
		return []journal.Entry{taskClaim(c)}
	}
	if held, err := w.look(c.Cgroup, c.Knob); err != nil || held != c.From || held == c.To {
		return nil
	}
	list, err := w.companionClaims(c)
	switch {
	case err != nil:
		return nil
	case claimed: // Do widens the range: if the entry ended meanwhile, our own value would become the original
		return list
	}
	return append(list, ownClaim(c, e))
}

// ownClaim is the claim of the value of the file before a change, and of the range that the change asks for.
func ownClaim(c plan.Change, e journal.Entry) journal.Entry {
	return journal.Entry{ID: c.Cgroup, Knob: c.Knob, Original: c.From, Baseline: e.Baseline, Min: c.Min, Max: c.Max}
}
