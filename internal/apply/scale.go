package apply

import (
	"plimsoll/internal/cgroup"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Present is an entry of the journal with its values as the kernel may have scaled them since (journal.Entry.In).
func Present(tree *cgroup.Tree, e journal.Entry) journal.Entry {
	if e.Period == "" {
		return e
	}
	b, err := tree.Bandwidth(e.Path)
	if err != nil {
		return e
	}
	return e.In(b)
}

// lookAt reads the file of an entry, and the entry as it is for that value.
func (w *Writer) lookAt(e journal.Entry) (journal.Entry, plan.Value, error) {
	held, err := w.look(e.ID, e.Knob)
	now := Present(w.tree, e)
	if now.Period != e.Period {
		held, err = w.look(e.ID, e.Knob) // the kernel may have scaled the value since
	}
	return now, held, err
}

// keepUp brings an entry of the journal up to what the kernel has made of its values.
func (w *Writer) keepUp(id workload.ID, knob plan.Knob) error {
	e, _ := w.journal.Entry(id, knob)
	now := Present(w.tree, e)
	if now.Period == e.Period {
		return nil
	}
	return w.journal.Claim(now)
}

// claimOf is the claim of a value that a file holds, and of no other value yet.
func (w *Writer) claimOf(id workload.ID, knob plan.Knob, held plan.Value) journal.Entry {
	e := journal.Entry{ID: id, Knob: knob, Original: held, Min: held, Max: held}
	if !knob.OfBandwidth() {
		return e
	}
	if b, err := w.tree.Bandwidth(id.Path); err == nil {
		e.Period = plan.Time(b.Period)
	}
	return e
}
