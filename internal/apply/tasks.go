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

// A knob of tasks (plan.Slice, plan.Cookie) is set for each task of a group and of the groups below. The journal has
// one entry for the group: the original value is always the kernel's default, so that only our values need to be known.
// A restore resets every task in the group that has a value of ours; any other value is another program's, and stays.
// Tasks created during a walk inherit the value that is being replaced, so the walk is repeated until it finds nothing
// to do.

// Tasks are the kernel's tasks, by thread id.
type Tasks interface {
	Slice(tid int) (time.Duration, error)
	SetSlice(tid int, slice time.Duration) error // 0: the kernel's default
	BaseSlice() (time.Duration, error)           // the kernel's default
	Cookie(tid int) (uint64, error)
	SetCookie(tid int, id uint64) error // 0: none
	RunsOn(tid int, cpus []int) (bool, error)
	Name(tid int) string // "" where the task has ended
	// Passed says whether an error means that the task has exited, or is of a kind without this knob.
	Passed(error) bool
}

// attribute is one knob of tasks.
type attribute struct {
	base plan.Value // the value read while it is not set
	get  func(tid int) (plan.Value, error)
	set  func(tid int, v plan.Value) error
}

var (
	errNoTasks = errors.New("tasks cannot be set here")
	// errHidden: v2 lists such a task as 0, which system calls take for the calling thread.
	errHidden = errors.New("tasks of another PID namespace cannot be seen: that needs hostPID: true, or --pid=host")
)

func attributeOf(t Tasks, knob plan.Knob) (attribute, error) {
	switch {
	case t == nil:
		return attribute{}, errNoTasks
	case knob == plan.Slice:
		base, err := t.BaseSlice()
		return attribute{base: plan.Time(base),
			get: func(tid int) (plan.Value, error) { return spellTime(t.Slice(tid)) },
			set: func(tid int, v plan.Value) error { return setParsed(tid, t.SetSlice, v.Time) }}, err
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

// ReadTasks counts the tasks of a group and of the groups below by their value. With an error it counts the tasks that
// could be read.
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

// each calls f with every task of a group and of the groups below, and its value.
func (a attribute) each(tree *cgroup.Tree, t Tasks, group string, f func(tid int, held plan.Value) error) error {
	tids, err := tree.Tasks(group)
	if err != nil {
		return err
	}
	var faults error
	for _, tid := range tids {
		held, err := plan.Value(""), errHidden
		if tid != 0 {
			held, err = a.get(tid)
		}
		if err == nil {
			err = f(tid, held)
		}
		if err != nil && !t.Passed(err) && faults == nil { // report the first error only
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

// walks bounds the walks over a group: each finds only tasks created during the previous one.
const walks = 5

// setTasks carries out a change of a knob of tasks. It does not hold the lock while it looks at the tasks.
func (w *Writer) setTasks(c plan.Change) plan.Result {
	if err := w.identify(c.Cgroup, c.Knob); isGone(err) {
		return w.ended(c, plan.Gone, "", err)
	} else if err != nil {
		return w.result(c, plan.Refused, "", err)
	}
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	if c.Restore && !claimed {
		return w.result(c, plan.Skipped, c.From, errNotOurs)
	}
	a, err := attributeOf(w.Tasks, c.Knob)
	if err == nil && !c.Restore {
		err = w.claimTasks(c)
	}
	if err != nil {
		return w.result(c, plan.Refused, c.From, w.explain(c, err))
	}
	replaced := func(held plan.Value) bool { return e.Ours(held) || !c.Restore && held == a.base }
	w.mu.Unlock() // there may be many threads, and a refill must not wait for them
	set, err := w.walk(a, c, replaced)
	w.mu.Lock()
	switch {
	case errors.Is(err, errHidden) && set == 0 && !claimed: // there is nothing to restore
		return w.ended(c, plan.Refused, c.From, err)
	case err != nil:
		return w.result(c, plan.Refused, c.From, w.explain(c, fmt.Errorf("%d tasks set, others not: %w", set, err)))
	case c.Restore:
		return w.ended(c, plan.Applied, c.To, nil)
	}
	return w.result(c, plan.Applied, c.To, nil)
}

// walk sets every task whose value is replaced, and returns their number.
func (w *Writer) walk(a attribute, c plan.Change, replaced func(plan.Value) bool) (set int, err error) {
	for range walks {
		before := set
		err = a.each(w.tree, w.Tasks, c.Cgroup.Path, func(tid int, held plan.Value) error {
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
	if errors.Is(err, fs.ErrNotExist) { // the group and its tasks are gone
		err = nil
	}
	return set, err
}

// taskClaim is the claim of a knob of tasks. Tasks have no original value but the knob's default.
func taskClaim(c plan.Change) journal.Entry {
	unset := c.Knob.Unset()
	return journal.Entry{ID: c.Cgroup, Knob: c.Knob, Original: unset, Min: unset, Max: c.To}
}

// claimTasks records in the journal the value about to be set.
func (w *Writer) claimTasks(c plan.Change) error {
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	if !claimed {
		if err := w.journal.Claim(taskClaim(c)); err != nil {
			return err
		}
	}
	if claimed && e.Written() && e.Last == c.To {
		return nil
	}
	return w.journal.Intend(c.Cgroup, c.Knob, c.To)
}

// inTasks says whether a task of a group has a value of ours.
func (w *Writer) inTasks(e journal.Entry) (found plan.Value, ours bool) {
	if w.identify(e.ID, e.Knob) != nil {
		return "", false
	}
	counts, _ := ReadTasks(w.tree, w.Tasks, e.Path, e.Knob) // an error leaves out tasks only
	for held := range counts {
		if e.Ours(held) && held != e.Knob.Unset() {
			found, ours = max(found, held), true
		}
	}
	return found, ours
}
