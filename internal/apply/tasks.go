package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
)

// A knob of tasks (plan.Slice, plan.Cookie) is set in each task of a group and of what is below it. The journal has one
// entry for the group: what nobody has set is always the same, so that of no task more need be known than whether it holds
// a value of ours. To undo it is to take away what is ours, wherever it is found in the group; a task that holds anything
// else has it from somebody else, and keeps it. Tasks that are made while the group is walked inherit what is being
// replaced, so a walk is repeated until it finds nothing to do.

// Tasks are the kernel's tasks, by thread id.
type Tasks interface {
	Slice(tid int) (time.Duration, error)
	SetSlice(tid int, slice time.Duration) error // 0: the kernel's own
	BaseSlice() (time.Duration, error)           // of a task that has none of its own
	Cookie(tid int) (uint64, error)
	SetCookie(tid int, id uint64) error // 0: none
	RunsOn(tid int, cpus []int) (bool, error)
	Name(tid int) string // "" where the task has ended
	// Passed says of an error that the task has ended, or is of a kind that does not have the knob.
	Passed(error) bool
}

// Over has the writer set knobs of tasks, too.
func (w *Writer) Over(t Tasks) *Writer {
	w.tasks = t
	return w
}

// attribute is one knob of tasks.
type attribute struct {
	base plan.Value // as it reads where nobody has set it
	get  func(tid int) (plan.Value, error)
	set  func(tid int, v plan.Value) error
}

var errNoTasks = errors.New("tasks cannot be set here")

func attributeOf(t Tasks, knob plan.Knob) (attribute, error) {
	switch {
	case t == nil:
		return attribute{}, errNoTasks
	case knob == plan.Slice:
		base, err := t.BaseSlice()
		return attribute{base: plan.Time(base),
			get: func(tid int) (plan.Value, error) {
				slice, err := t.Slice(tid)
				return plan.Time(slice), err
			},
			set: func(tid int, v plan.Value) error {
				slice, err := v.Time()
				return errors.Join(err, t.SetSlice(tid, slice))
			}}, err
	}
	return attribute{base: plan.Number(0),
		get: func(tid int) (plan.Value, error) {
			id, err := t.Cookie(tid)
			return plan.Number(int64(id)), err
		},
		set: func(tid int, v plan.Value) error {
			id, err := v.Number()
			return errors.Join(err, t.SetCookie(tid, uint64(id)))
		}}, nil
}

// ReadTasks counts the tasks of a group, and of what is below it, that hold each value: those that could be read, where
// not all could.
func ReadTasks(tree *cgroup.Tree, t Tasks, group string, knob plan.Knob) (map[plan.Value]int, error) {
	counts := map[plan.Value]int{}
	a, err := attributeOf(t, knob)
	if err != nil {
		return counts, err
	}
	err = a.each(tree, t, group, func(_ int, held plan.Value) error {
		if held == a.base {
			held = knob.Unset()
		}
		counts[held]++
		return nil
	})
	return counts, err
}

// each calls f with every task of a group and of what is below it, and what it holds.
func (a attribute) each(tree *cgroup.Tree, t Tasks, group string, f func(tid int, held plan.Value) error) error {
	tids, err := tree.Tasks(group)
	if err != nil {
		return err
	}
	var faults error
	for _, tid := range tids {
		held, err := a.get(tid)
		if err == nil {
			err = f(tid, held)
		}
		if err != nil && !t.Passed(err) && faults == nil { // they tend to be alike
			faults = err
		}
	}
	children, err := tree.Children(group)
	if err != nil {
		return errors.Join(faults, err)
	}
	for _, c := range children {
		if err := a.each(tree, t, c, f); err != nil && !errors.Is(err, fs.ErrNotExist) && faults == nil {
			faults = err
		}
	}
	return faults
}

// walks is how often a group is walked at most: each finds only what was made during the one before.
const walks = 5

// stamp carries out a change of a knob of tasks.
func (w *Writer) stamp(c plan.Change) plan.Result {
	if err := w.identify(c.Cgroup, c.Knob); isGone(err) {
		return w.ended(c, plan.Gone, "", err)
	} else if err != nil {
		return w.result(c, plan.Refused, "", err)
	}
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	if c.Restore && !claimed {
		return w.result(c, plan.Skipped, c.From, errors.New("nothing of ours stands here"))
	}
	a, err := attributeOf(w.tasks, c.Knob)
	if err == nil && !c.Restore {
		err = w.claimTasks(c)
	}
	if err != nil {
		return w.result(c, plan.Refused, c.From, w.explain(c, err))
	}
	replaced := func(held plan.Value) bool { return e.Ours(held) || !c.Restore && held == a.base }
	set, err := w.walk(a, c, replaced)
	switch {
	case err != nil:
		return w.result(c, plan.Refused, c.From, w.explain(c, fmt.Errorf("%d tasks set, others not: %w", set, err)))
	case c.Restore:
		return w.ended(c, plan.Applied, c.To, nil)
	}
	return w.result(c, plan.Applied, c.To, nil)
}

// walk sets every task whose value is to be replaced, and says how many were.
func (w *Writer) walk(a attribute, c plan.Change, replaced func(plan.Value) bool) (set int, err error) {
	for range walks {
		before := set
		err = a.each(w.tree, w.tasks, c.Cgroup.Path, func(tid int, held plan.Value) error {
			if held == c.To || !replaced(held) {
				return nil
			}
			err := a.set(tid, c.To)
			if err == nil {
				set++
			}
			return err
		})
		if set == before {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // and with the group its tasks
		err = nil
	}
	return set, err
}

// claimTasks has the journal know what is about to be set.
func (w *Writer) claimTasks(c plan.Change) error {
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	if !claimed {
		err := w.journal.Claim(journal.Entry{ID: c.Cgroup, Knob: c.Knob, Original: c.Knob.Unset(), Min: c.Knob.Unset(), Max: c.To})
		if err != nil {
			return err
		}
	}
	if claimed && e.Written() && e.Last == c.To {
		return nil
	}
	return w.journal.Intend(c.Cgroup, c.Knob, c.To)
}

// standsInTasks says whether a task of a group holds a value of ours.
func (w *Writer) standsInTasks(e journal.Entry) (stands plan.Value, ours bool) {
	a, err := attributeOf(w.tasks, e.Knob)
	if err != nil || w.identify(e.ID, e.Knob) != nil {
		return "", false
	}
	_ = a.each(w.tree, w.tasks, e.Path, func(_ int, held plan.Value) error { // what can be read counts
		if e.Ours(held) && held != a.base {
			stands, ours = held, true
		}
		return nil
	})
	return stands, ours
}

// examineTasks is the change that takes back what an entry says of tasks.
func examineTasks(e journal.Entry) plan.Change {
	return plan.Change{Cgroup: e.ID, Knob: e.Knob, From: e.Last, To: e.Knob.Unset(), Restore: true, Why: "restore the original value"}
}
