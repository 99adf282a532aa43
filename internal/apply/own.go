package apply

import (
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Rebase records the limit that an owner declared while a value of ours is in the file: a restore writes it.
func (w *Writer) Rebase(id workload.ID, knob plan.Knob, declared plan.Value) error {
	v, err := canonical(knob, declared)
	if err != nil {
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
	err := w.journal.Claim(journal.Entry{ID: id, Knob: knob, Original: held, Baseline: baseline, Min: held, Max: held})
	if err != nil {
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
	held, err := w.look(e.ID, e.Knob)
	return held, err == nil && held != w.attainable(e.Knob, e.Target(), "/") && w.ours(e, held)
}
