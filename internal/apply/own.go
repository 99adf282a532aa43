package apply

import (
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Rebase books the limit that an owner declared while a value of ours stands: a restore goes there.
func (w *Writer) Rebase(id workload.ID, knob plan.Knob, declared plan.Value) error {
	v, err := canonical(knob, declared)
	if err != nil {
		return err
	}
	return w.journal.SetBaseline(id, knob, v)
}

// Forget books that what is in a file is not ours: its owner resized it, or another program wrote it.
func (w *Writer) Forget(id workload.ID, knob plan.Knob) error { return w.journal.Done(id, knob) }

// Adopt books a value that is in a file because of us, though we have not written it there: a group was made while
// its parent held it. A restore goes to baseline.
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

// Stands says what is in the file of an entry, and whether that is ours and to be put back. It changes nothing, not even in
// a journal, and does without one.
func (w *Writer) Stands(e journal.Entry) (held plan.Value, ours bool) {
	if e.Knob.OfTasks() {
		return w.standsInTasks(e)
	}
	held, err := w.look(e.ID, e.Knob)
	return held, err == nil && held != w.attainable(e.Knob, e.Target(), "/") && w.ours(e, held)
}
