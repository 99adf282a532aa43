package apply

import (
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Claims are on disk before the first write (package journal), and a disk may be slow. A raise waits for it. A refill,
// which needs no claim, does not: a turn claims what it is about to write in advance, all of it with one sync, while
// others may write.

// Claim claims what Do would claim for these changes, and waits for the disk once, or twice where the journal is mostly
// history. It may be called during a Do for other changes. Do retries what could not be claimed, and reports why.
func (w *Writer) Claim(changes []plan.Change) {
	if w.hold.Load() {
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
	_, claimed := w.journal.Entry(c.Cgroup, c.Knob)
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
	return append(list, w.ownClaim(c))
}

// ownClaim is the claim of the value of the file before a change, and of the range that the change asks for.
func (w *Writer) ownClaim(c plan.Change) journal.Entry {
	e := w.claimOf(c.Cgroup, c.Knob, c.From)
	e.Min, e.Max, e.Quota = c.Min, c.Max, c.Quota
	return e
}

// Rebase records the limit that an owner declared while a value of ours is in the file: a restore writes it.
func (w *Writer) Rebase(id workload.ID, knob plan.Knob, declared plan.Value) error {
	v, err := canonical(knob, declared)
	if err != nil {
		return err
	}
	if err := w.keepUp(id, knob); err != nil {
		return err
	}
	return w.journal.SetBaseline(id, knob, v)
}

// Forget records that the value of a file is not ours: its owner resized it, or another program wrote it.
func (w *Writer) Forget(id workload.ID, knob plan.Knob) error { return w.journal.Done(id, knob) }

// Adopt records a value that is in a file because of us although we did not write it there: a new group copied it from
// its parent. A restore writes baseline.
func (w *Writer) Adopt(id workload.ID, knob plan.Knob, held, baseline plan.Value) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.adopt(id, knob, held, baseline)
}

func (w *Writer) adopt(id workload.ID, knob plan.Knob, held, baseline plan.Value) error {
	e := w.claimOf(id, knob, held)
	e.Baseline = baseline
	if err := w.journal.Claim(e); err != nil {
		return err
	}
	return w.journal.Intend(id, knob, held)
}

// InFile returns the value of an entry's file, and whether that is ours and must be restored. It needs no journal and
// changes nothing.
func (w *Writer) InFile(e journal.Entry) (held plan.Value, ours bool) {
	if e.Knob.OfTasks() {
		return w.inTasks(e)
	}
	e, held, err := w.lookAt(e)
	return held, err == nil && held != w.attainable(e.Knob, e.Target(), "/") && w.ours(e, held)
}
