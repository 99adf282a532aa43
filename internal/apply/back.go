package apply

import (
	"errors"
	"time"

	"plimsoll/internal/plan"
)

// Bursts that come back.
//
// Problem: on a write of the quota or period, the kernel reads the burst before it takes the mutex, and then sets both
// (kernel/sched/core.c, tg_set_cfs_quota and tg_set_cfs_period; cpu_max_write). So an owner's write that overlaps ours
// sets the burst that we have just replaced again, although our write has succeeded. On a busy machine the owner may
// wait for a CPU in between.
//
// Approach: a value of ours that we replaced is still ours when it is found in the file. If it is read back after the
// write, it is replaced again at once. Later, the ledger finds it in the groups that are read (ledger.CameBack), and
// RestoreAgain finds it everywhere, also in the groups that were left, and at the end.
//
// Known limits: an owner's write that takes longer than backWithin, or lateness at the end, is not noticed in a group
// that was left; nor is one whose agent was killed meanwhile. Where the kernel refuses a second restore in a group that
// was left, the burst stays in the journal and is restored at the end. A quota that was lowered can come back in the
// same way by a write of the period alone on v1; runc writes the quota next.

// errBack says why a burst still has our former value.
var errBack = errors.New("the owner's write of the quota at the same time put our former burst back")

// writesAtMost is how often a burst is written that comes back at once.
const writesAtMost = 3

// backWithin is for how long restored bursts are checked.
const backWithin = 5 * time.Second

// isBack says whether the file holds the burst that a change has just replaced, and which was ours.
func (w *Writer) isBack(c plan.Change, held plan.Value) bool {
	return c.Knob == plan.Burst && held != c.To && held == c.From && w.holdsOurs(c, held)
}

// holdsOurs says whether a value in the file of a change is ours.
func (w *Writer) holdsOurs(c plan.Change, held plan.Value) bool {
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	return claimed && w.ours(e, held)
}

// RestoreAgain restores the bursts that were restored lately and came back, except where a burst was written since.
func (w *Writer) RestoreAgain() []plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restoreAgain()
}

func (w *Writer) restoreAgain() (results []plan.Result) {
	kept := w.bursts[:0]
	for _, b := range w.bursts {
		c := b.Change
		if _, claimed := w.journal.Entry(c.Cgroup, c.Knob); claimed || w.now().Sub(b.At) > backWithin {
			continue
		}
		held, err := w.look(c.Cgroup, c.Knob)
		if err != nil {
			continue
		}
		kept = append(kept, b)
		if held != c.From {
			continue
		}
		c.Why = errBack.Error()
		if err := w.adopt(c.Cgroup, c.Knob, held, c.To); err != nil {
			results = append(results, w.result(c, plan.Refused, held, err))
			continue
		}
		results = append(results, w.one(c, false))
	}
	w.bursts = kept
	return results
}

// awaitOwners ends a restore after which nobody checks the files: it waits for owners' writes that may be under way,
// and restores what they put back.
func (w *Writer) awaitOwners(patience time.Duration) (results []plan.Result) {
	for n := 0; n < writesAtMost && len(w.bursts) > 0 && patience > 0; n++ {
		w.Sleep(lateness)
		again := w.restoreAgain()
		if len(again) == 0 {
			break
		}
		results = append(results, again...)
	}
	return results
}
