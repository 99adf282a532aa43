// Package apply carries a plan to the kernel through the journal, and puts everything back.
//
// # Problem
//
// Others write the same files, at any time: the kubelet, systemd, runc, an operator. The kernel refuses and clamps.
// The process may die between any two system calls. Still nothing of anybody else's may be lost, and nothing of
// ours may stay.
//
// # Approach
//
// Each change carries what its decision was based on. The writer looks at the identity of the group and at what
// stands in the file, and writes only if that is what the decision saw and not what is wanted already: each write
// of a quota or burst refills the group (kernel/sched/core.c, tg_set_cfs_bandwidth), also with an unchanged value.
// The journal knows of the value before the kernel does. After the write the file is read back.
//
// A restore goes to the declared limit where it is known, else to the original, and only from a value of ours in
// the same group.
//
// # Known limits
//
// The files have no compare-and-swap: a foreign write between our look and our write is overwritten. The
// window is two system calls wide. For the same reason a group can be replaced by another of its name in it.
package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Writer is the only writer of control-group files. Its methods may be called from several goroutines.
type Writer struct {
	tree    *cgroup.Tree
	journal *journal.Journal
	tasks   Tasks   // nil: no knob of tasks is ever set
	all     cpu.Set // the CPUs that may ever be online; none: not known
	now     func() time.Time
	sleep   func(time.Duration)
	shield  shield
	quotas  quotas
	hold    atomic.Bool
	mu      sync.Mutex // a plan and a restore do not mix
}

// New makes a writer.
func New(tree *cgroup.Tree, j *journal.Journal, now func() time.Time) *Writer {
	return &Writer{tree: tree, journal: j, now: now, sleep: time.Sleep}
}

// SetHold turns the kill switch: while it is held, only restoring writes.
func (w *Writer) SetHold(hold bool) { w.hold.Store(hold) }

// Held says how the kill switch stands.
func (w *Writer) Held() bool { return w.hold.Load() }

// Do carries out changes in the order that the kernel wants (plan.Order), and reports in that order. A change that
// fails does not stop the others: where it matters the kernel refuses those as well.
func (w *Writer) Do(changes []plan.Change) []plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	ordered := make([]plan.Change, 0, len(changes))
	for _, c := range changes {
		ordered = append(ordered, w.steps(c)...)
	}
	plan.Order(ordered)
	results := make([]plan.Result, 0, len(ordered))
	for _, c := range ordered {
		results = append(results, w.family(c, false)...)
	}
	w.lookAfter() // no throttle waits for that
	return results
}

var (
	errGone   = errors.New("the group is gone")
	errOther  = errors.New("another group of the same name stands in its place")
	errNoFile = errors.New("the group has no such file")
)

// look reads a knob of exactly this group.
func (w *Writer) look(id workload.ID, knob plan.Knob) (plan.Value, error) {
	held, err := Read(w.tree, id.Path, knob)
	if other := w.identify(id, knob); other != nil { // asked last, so that it is true of what was read
		return "", other
	}
	if missing(err) {
		return "", errNoFile
	}
	return held, err
}

// identify tells whether the group is still the one that is meant.
func (w *Writer) identify(id workload.ID, knob plan.Knob) error {
	inode, err := w.inode(id.Path, knob)
	switch {
	case missing(err):
		return errGone
	case err != nil:
		return err
	case inode != id.Inode:
		return errOther
	}
	return nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func isGone(err error) bool { return errors.Is(err, errGone) || errors.Is(err, errOther) }

func (w *Writer) result(c plan.Change, o plan.Outcome, inForce plan.Value, err error) plan.Result {
	r := plan.Result{Change: c, Outcome: o, InForce: inForce, At: w.now()}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// ended is a result after which nothing of ours is in the file.
func (w *Writer) ended(c plan.Change, o plan.Outcome, inForce plan.Value, err error) plan.Result {
	return w.result(c, o, inForce, errors.Join(err, w.journal.Done(c.Cgroup, c.Knob), w.unclaimCompanion(c)))
}

// one carries out one change. With force, a restore overwrites a foreign value as well.
func (w *Writer) one(c plan.Change, force bool) plan.Result {
	if w.Held() && !c.Restore {
		return w.result(c, plan.Skipped, "", errors.New("writing is held"))
	}
	c, err := normal(c)
	if err != nil {
		return w.result(c, plan.Refused, "", err)
	}
	if c.Knob.OfTasks() {
		return w.stamp(c)
	}
	if r, stop := w.compare(c, force); stop {
		return r
	}
	switch {
	case c.Refill:
		return w.refill(c)
	case c.Repair:
		return w.repair(c)
	}
	if c.Restore {
		_ = w.claimCompanion(c) // a full disk must not keep us from restoring
		return w.write(c, false)
	}
	e, _ := w.journal.Entry(c.Cgroup, c.Knob)
	synced, err := w.claim(c)
	if err != nil {
		return w.unjournalled(c, e, err)
	}
	if synced { // which can take long: look again
		if r, stop := w.compare(c, force); stop {
			return r
		}
	}
	if err := w.intend(c); err != nil {
		return w.unjournalled(c, e, err)
	}
	return w.write(c, !w.ours(e, c.From))
}

// unjournalled carries out what needs no journal while that fails, as on a full disk: a lowering of a value of ours goes all the
// way to what a restore would write. Anything else is refused.
func (w *Writer) unjournalled(c plan.Change, e journal.Entry, why error) plan.Result {
	target := e.Target()
	lowers, ok1 := order(c.Knob, c.To, c.From)
	below, ok2 := order(c.Knob, target, c.From)
	if c.Knob != plan.Quota && c.Knob != plan.Burst || !ok1 || !ok2 || lowers >= 0 || below >= 0 || !w.ours(e, c.From) {
		return w.result(c, plan.Refused, c.From, why)
	}
	c.To = target
	return w.write(c, false)
}

// compare reads the file before it is written. stop says that it must not or need not be.
func (w *Writer) compare(c plan.Change, force bool) (r plan.Result, stop bool) {
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	held, err := w.look(c.Cgroup, c.Knob)
	switch {
	case isGone(err), errors.Is(err, errNoFile) && claimed: // with the file went the value
		return w.ended(c, plan.Gone, "", err), true
	case err != nil:
		return w.result(c, plan.Refused, "", w.explain(c, err)), true
	case c.Knob == plan.Weight && w.idle(c.Cgroup):
		return w.result(c, plan.Refused, held, errIdle), true
	case held != c.From && w.ours(e, held):
		return w.result(c, plan.Trampled, held, fmt.Errorf("expected %s, found our own %s", c.From, held)), true
	case held != c.From:
		return w.ended(c, plan.Trampled, held, fmt.Errorf("expected %s, another program has set %s", c.From, held)), true
	case held == c.To && c.Restore:
		return w.ended(c, plan.Skipped, held, nil), true
	case held == c.To && !c.Refill:
		return w.result(c, plan.Skipped, held, nil), true
	case c.Restore && claimed && w.inUse(c):
		return w.ended(c, plan.Skipped, held, errors.New("another program has bound a group below it meanwhile; left alone")), true
	case c.Restore && !claimed:
		return w.result(c, plan.Skipped, held, errors.New("nothing of ours stands here")), true
	case c.Restore && !force && !w.ours(e, held):
		return w.ended(c, plan.Trampled, held, leftAlone(held)), true
	}
	return plan.Result{}, false
}

func leftAlone(held plan.Value) error {
	return fmt.Errorf("another program changed it to %s; left alone", held)
}

// refill writes what is in the file already, for the runtime that the write grants. Nothing of ours stands there
// after it that did not before, so the journal need not know.
func (w *Writer) refill(c plan.Change) plan.Result {
	if c.To != c.From {
		return w.result(c, plan.Refused, c.From, fmt.Errorf("a refill from %s to %s is none", c.From, c.To))
	}
	err := set(w.tree, c.Cgroup.Path, c.Knob, c.To)
	held, lookErr := w.look(c.Cgroup, c.Knob)
	if err == nil && w.quotas.notify != nil {
		w.quotas.refilled[c.Cgroup.Path] = c.Cgroup
	}
	return w.rewritten(c, err, held, lookErr)
}

// repair writes what the owner declared in its place. The value is the owner's, so that nothing is put back after it, and the
// journal need not know.
func (w *Writer) repair(c plan.Change) plan.Result {
	_ = w.claimCompanion(c) // a full disk must not keep a limit from being in force
	err := set(w.tree, c.Cgroup.Path, c.Knob, c.To)
	held, lookErr := w.look(c.Cgroup, c.Knob)
	_ = w.unclaimCompanion(c)
	return w.rewritten(c, err, held, lookErr)
}

// rewritten is what became of a write of a value that is not ours, or was ours before.
func (w *Writer) rewritten(c plan.Change, err error, held plan.Value, lookErr error) plan.Result {
	switch {
	case isGone(lookErr):
		return w.ended(c, plan.Gone, "", lookErr)
	case err != nil:
		return w.result(c, plan.Refused, held, w.explain(c, err))
	case lookErr != nil:
		return w.result(c, plan.Applied, "", fmt.Errorf("written, but it cannot be read back: %w", lookErr))
	case held != c.To:
		return w.ended(c, plan.Trampled, held, fmt.Errorf("wrote %s, and another program then %s", c.To, held))
	}
	return w.result(c, plan.Applied, held, nil)
}

// normal spells the values of a change canonically and gives it a range if it has none.
func normal(c plan.Change) (plan.Change, error) {
	out := c
	var err, sum error
	out.From, err = canonical(c.Knob, c.From)
	sum = errors.Join(sum, err)
	out.To, err = canonical(c.Knob, c.To)
	if sum = errors.Join(sum, err); sum != nil {
		return c, sum
	}
	lo, hi := out.From, out.To
	if sign, _ := order(c.Knob, lo, hi); sign > 0 {
		lo, hi = hi, lo
	}
	if out.Min == "" {
		out.Min = lo
	}
	if out.Max == "" {
		out.Max = hi
	}
	return out, nil
}

// claim makes sure that the journal knows what stood in the file before us, and that the new value is in the range
// that was claimed. synced says that it had to wait for the disk.
func (w *Writer) claim(c plan.Change) (synced bool, err error) {
	e, ok := w.journal.Entry(c.Cgroup, c.Knob)
	if ok && !w.ours(e, c.From) && c.From != e.Original {
		// What we had written was overwritten, and the decision knows: what stands there now is the original.
		if err := w.journal.Done(c.Cgroup, c.Knob); err != nil {
			return false, err
		}
		e, ok = journal.Entry{}, false
	}
	if !ok || !within(c.Knob, c.To, e.Min, e.Max) {
		synced = true
		err = w.journal.Claim(journal.Entry{ID: c.Cgroup, Knob: c.Knob, Original: c.From, Baseline: e.Baseline,
			Min: c.Min, Max: c.Max})
	}
	if err == nil {
		err = w.claimCompanion(c)
	}
	return synced, err
}

// intend notes the value that is about to be written.
func (w *Writer) intend(c plan.Change) error {
	e, _ := w.journal.Entry(c.Cgroup, c.Knob)
	if w.ours(e, c.From) && c.From != e.Last {
		// The last intent was refused, or a crash came before its write. The journal keeps track of two intents, so
		// what is in the file must be one of them once more.
		if err := w.journal.Intend(c.Cgroup, c.Knob, c.From); err != nil {
			return err
		}
	}
	return w.journal.Intend(c.Cgroup, c.Knob, c.To)
}

// write does it and reads back. fresh: if it fails, nothing of ours is in the file.
func (w *Writer) write(c plan.Change, fresh bool) plan.Result {
	var err error
	if c.Knob == plan.Idle && c.To == "0" {
		err = w.clearIdle(c.Cgroup)
	} else {
		err = set(w.tree, c.Cgroup.Path, c.Knob, c.To)
	}
	if errors.Is(err, syscall.ENOSPC) && c.Restore && c.Knob == plan.CPUs && c.To == "" {
		return w.free(c, err)
	}
	held, lookErr := w.look(c.Cgroup, c.Knob)
	switch {
	case isGone(lookErr):
		return w.ended(c, plan.Gone, "", lookErr)
	case err != nil && fresh && held == c.From:
		return w.ended(c, plan.Refused, held, w.explain(c, err))
	case err != nil && held == c.To: // it was taken, and what belongs to it was not
		return w.result(c, plan.Applied, held, err)
	case err != nil:
		return w.result(c, plan.Refused, held, w.explain(c, err))
	case lookErr != nil:
		return w.result(c, plan.Applied, "", fmt.Errorf("written, but it cannot be read back: %w", lookErr))
	case held == c.To && c.Restore:
		return w.ended(c, plan.Applied, held, nil)
	case held == c.To:
		return w.result(c, plan.Applied, held, nil)
	case clamps(c, held):
		return w.result(c, plan.Clamped, held, w.journal.Intend(c.Cgroup, c.Knob, held))
	}
	return w.ended(c, plan.Trampled, held, fmt.Errorf("wrote %s, and another program then %s", c.To, held))
}

// Possible has the writer know the CPUs that may ever be online.
func (w *Writer) Possible(all cpu.Set) *Writer {
	w.all = all
	return w
}

// free gives a group all CPUs that was bound to none. Most kernels do not take the empty list back while there are
// tasks in the group (v2; kernel/cgroup/cpuset.c, validate_change). A list of all possible CPUs is as good: the kernel takes
// CPUs that are offline (v2, update_cpumask), and those of a list that are online follow the group above.
func (w *Writer) free(c plan.Change, refused error) plan.Result {
	all, err := w.all, error(nil)
	if len(all) == 0 {
		all, err = w.tree.EffectiveCPUs("/")
	}
	if err == nil {
		err = w.tree.SetCPUs(c.Cgroup.Path, all)
	}
	held, lookErr := w.look(c.Cgroup, c.Knob)
	switch {
	case isGone(lookErr):
		return w.ended(c, plan.Gone, "", lookErr)
	case err != nil || lookErr != nil:
		return w.result(c, plan.Refused, held, w.explain(c, errors.Join(refused, err, lookErr)))
	}
	return w.ended(c, plan.Clamped, held, fmt.Errorf("the kernel takes no empty list while tasks are in the group; it has all CPUs: %s", held))
}
