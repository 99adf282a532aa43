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
	if b, err := tree.Bandwidth(e.Path); err == nil {
		e = e.In(b)
	}
	return e
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

// current is a restore with its values as the kernel may have scaled them since it was examined.
func (w *Writer) current(c plan.Change) plan.Change {
	e, _ := w.journal.Entry(c.Cgroup, c.Knob)
	if e, held, err := w.lookAt(e); err == nil && held != c.From && w.ours(e, held) {
		c.From, c.To = held, e.Target()
	}
	return c
}

// keepUp brings an entry of the journal up to what the kernel has made of its values.
func (w *Writer) keepUp(id workload.ID, knob plan.Knob) error {
	e, _ := w.journal.Entry(id, knob)
	if now := Present(w.tree, e); now.Period != e.Period {
		return w.journal.Claim(now)
	}
	return nil
}

// claimOf is the claim of a value that a file holds, and of no other value yet.
func (w *Writer) claimOf(id workload.ID, knob plan.Knob, held plan.Value) journal.Entry {
	e := journal.Entry{ID: id, Knob: knob, Original: held, Min: held, Max: held}
	if knob.OfBandwidth() {
		if b, err := w.tree.Bandwidth(id.Path); err == nil {
			e.Period = plan.Time(b.Period)
		}
	}
	return e
}
