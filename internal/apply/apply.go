// Package apply writes changes to control groups through the journal, and restores them.
//
// # Problem
//
// Other programs write the same files at any time: the kubelet, systemd, runc, an operator. The kernel refuses and
// clamps values. The process may die between any two system calls. Still no value of another program may be lost, and
// no value of ours may remain.
//
// # Approach
//
// Each change carries the value that its decision was based on (From). The writer checks the identity of the group and
// the value of the file, and writes only if the file still holds From and not yet the new value: each write of a quota
// or burst refills the group (kernel/sched/core.c, tg_set_cfs_bandwidth), even with an unchanged value. A value is in
// the journal before it is in the file. After the write the file is read back.
//
// A restore writes the declared limit where that is known, else the original value. It only replaces a value of ours in
// the same group.
//
// # Known limits
//
// The files have no compare-and-swap: a foreign write between our reading and our write is overwritten. The window is
// two system calls wide. In the same window a group can be replaced by another of its name.
package apply

import (
	"cmp"
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
	Tasks    Tasks                   // nil: no knob of tasks is set
	Possible cpu.Set                 // the CPUs that may ever be online; empty: not known
	Online   func() (cpu.Set, error) // the CPUs that are online; nil: not known, as in tests
	Root     string                  // of the cpuset hierarchy, whose tasks a shield may hold; "": there is no shield
	Sleep    func(time.Duration)     // a simulated machine need not wait

	tree    *cgroup.Tree
	journal *journal.Journal
	now     func() time.Time
	moving  sync.Mutex   // of the tasks of the root; taken after mu, or without it
	stays   map[int]stay // by thread id: threads that stay in the root while there is a shield; under moving
	quotas  quotas
	bursts  []plan.Result // that were restored lately
	hold    atomic.Bool
	mu      sync.Mutex // serializes plans and restores
}

// New makes a writer.
func New(tree *cgroup.Tree, j *journal.Journal, now func() time.Time) *Writer {
	return &Writer{tree: tree, journal: j, now: now, Sleep: time.Sleep}
}

// SetHold sets the kill switch: while it is on, only restores are written.
func (w *Writer) SetHold(hold bool) { w.hold.Store(hold) }

// Do carries out changes in the order that the kernel requires (plan.Order), and returns the results in that order. A
// failing change does not stop the others: where one depends on another, the kernel refuses it as well.
func (w *Writer) Do(changes []plan.Change) []plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	ordered := w.Steps(changes)
	results := make([]plan.Result, 0, len(ordered))
	for _, c := range ordered {
		results = append(results, w.family(c, false)...)
	}
	w.readRefilled() // after all writes, so that no throttle waits for it
	return results
}

// Steps are what Do makes of changes, in the order that the kernel wants. Any part of them may be done by itself.
func (w *Writer) Steps(changes []plan.Change) []plan.Change {
	ordered := make([]plan.Change, 0, len(changes))
	for _, c := range changes {
		ordered = append(ordered, w.steps(c)...)
	}
	plan.Order(ordered)
	return ordered
}

var (
	errGone   = errors.New("the group is gone")
	errOther  = errors.New("another group has its name now")
	errNoFile = errors.New("the group has no such file")
	// errNotOurs and errInUse say why a restore writes nothing.
	errNotOurs = errors.New("the file holds no value of ours")
	errInUse   = errors.New("another program has bound a group below it meanwhile; left alone")
)

// look reads a knob of exactly this group.
func (w *Writer) look(id workload.ID, knob plan.Knob) (plan.Value, error) {
	held, err := Read(w.tree, id.Path, knob)
	if other := w.identify(id, knob); other != nil { // checked last, so that it holds for the value read
		return "", other
	}
	switch {
	case missing(err):
		return "", errNoFile
	case err != nil:
		return "", err
	}
	return held, nil
}

// identify checks that the group is still the intended one.
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

// ended makes a result after which no value of ours is in the file. A refill leaves the entry in the journal, which may
// wait for the disk, to who reads the group next.
func (w *Writer) ended(c plan.Change, o plan.Outcome, inForce plan.Value, err error) plan.Result {
	if c.Refill {
		return w.result(c, o, inForce, err)
	}
	return w.result(c, o, inForce, errors.Join(err, w.journal.Done(c.Cgroup, c.Knob), w.unclaimCompanion(c)))
}

// one carries out one change. With force, a restore also overwrites a foreign value.
func (w *Writer) one(c plan.Change, force bool) plan.Result {
	if w.hold.Load() && !c.Restore {
		return w.result(c, plan.Skipped, "", errors.New("writing is held"))
	}
	c, err := normal(c)
	if err != nil {
		return w.result(c, plan.Refused, "", err)
	}
	if c.Knob.OfTasks() {
		return w.setTasks(c)
	}
	var kept error
	if !c.Refill { // which needs no journal, and must not wait
		kept = w.keepUp(c.Cgroup, c.Knob)
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
		_ = w.claimCompanion(c) // a full disk must not prevent a restore
		return w.write(c, false)
	}
	e, _ := w.journal.Entry(c.Cgroup, c.Knob)
	synced, err := w.claim(c)
	if err = errors.Join(kept, err); err != nil {
		return w.unjournalled(c, e, err)
	}
	if synced { // a sync can take long: compare again
		if r, stop := w.compare(c, force); stop {
			return r
		}
	}
	if err := w.intend(c); err != nil {
		return w.unjournalled(c, e, err)
	}
	return w.write(c, !w.ours(e, c.From))
}

// unjournalled handles a change while the journal fails, as on a full disk: a lowering of a value of ours goes all the
// way to the value that a restore would write, which needs no journal. Any other change is refused.
func (w *Writer) unjournalled(c plan.Change, e journal.Entry, why error) plan.Result {
	target := Present(w.tree, e).Target()
	lowers, ok1 := order(c.Knob, c.To, c.From)
	below, ok2 := order(c.Knob, target, c.From)
	if !c.Knob.OfBandwidth() || !ok1 || !ok2 || lowers >= 0 || below >= 0 || !w.ours(e, c.From) {
		return w.result(c, plan.Refused, c.From, why)
	}
	c.To = target
	return w.write(c, false)
}

// compare reads the file before it is written. stop says that it must not or need not be written.
func (w *Writer) compare(c plan.Change, force bool) (r plan.Result, stop bool) {
	e, claimed := w.journal.Entry(c.Cgroup, c.Knob)
	held, err := w.look(c.Cgroup, c.Knob)
	switch {
	case isGone(err), errors.Is(err, errNoFile) && claimed: // our value went with the file
		return w.ended(c, plan.Gone, "", err), true
	case err != nil:
		return w.result(c, plan.Refused, "", w.explain(c, err)), true
	case c.Knob == plan.Weight && w.idle(c.Cgroup):
		return w.result(c, plan.Refused, held, errIdle), true
	case held != c.From && w.ours(e, held):
		return w.result(c, plan.Trampled, held, fmt.Errorf("expected %s, found our own %s", c.From, held)), true
	case held != c.From:
		err := fmt.Errorf("expected %s, another program has set %s", c.From, held)
		return w.ended(c, plan.Trampled, held, err), true
	case held == c.To && c.Restore:
		return w.ended(c, plan.Skipped, held, nil), true
	case held == c.To && !c.Refill:
		return w.result(c, plan.Skipped, held, nil), true
	case c.Restore && claimed && w.inUse(c):
		return w.ended(c, plan.Skipped, held, errInUse), true
	case c.Restore && !claimed:
		return w.result(c, plan.Skipped, held, errNotOurs), true
	case c.Restore && !force && !w.ours(e, held):
		return w.ended(c, plan.Trampled, held, leftAlone(held)), true
	}
	return plan.Result{}, false
}

func leftAlone(held plan.Value) error {
	return fmt.Errorf("another program changed it to %s; left alone", held)
}

// refill rewrites the file with its current value, for the runtime that the write grants. The journal need not record
// it, because the file holds the same value before and after.
func (w *Writer) refill(c plan.Change) plan.Result {
	if c.To != c.From {
		return w.result(c, plan.Refused, c.From, fmt.Errorf("not a refill: it changes %s to %s", c.From, c.To))
	}
	r := w.rewrite(c)
	if w.quotas.notify != nil && r.Outcome != plan.Refused && r.Outcome != plan.Gone {
		w.quotas.refilled[c.Cgroup.Path] = c.Cgroup
	}
	return r
}

// repair writes the declared value for the owner. The value is the owner's, so that there is nothing to restore and
// nothing to record in the journal.
func (w *Writer) repair(c plan.Change) plan.Result {
	_ = w.claimCompanion(c) // a full disk must not prevent the repair of a limit
	r := w.rewrite(c)
	_ = w.unclaimCompanion(c)
	return r
}

// rewrite writes a value that is not ours: that of a refill or repair.
func (w *Writer) rewrite(c plan.Change) (r plan.Result) {
	err := set(w.tree, c.Cgroup.Path, c.Knob, c.To)
	defer func() { r.Taken = took(err) }()
	held, lookErr := w.look(c.Cgroup, c.Knob)
	switch {
	case isGone(lookErr):
		return w.ended(c, plan.Gone, "", lookErr)
	case err != nil:
		return w.result(c, plan.Refused, held, w.explain(c, err))
	case lookErr != nil:
		return w.result(c, plan.Applied, "", fmt.Errorf("written, but it cannot be read back: %w", lookErr))
	case held != c.To && w.holdsOurs(c, held):
		return w.result(c, plan.Trampled, held, errBack)
	case held != c.To:
		return w.ended(c, plan.Trampled, held, fmt.Errorf("wrote %s, and another program then %s", c.To, held))
	}
	return w.result(c, plan.Applied, held, nil)
}

// normal brings the values of a change into canonical form, and sets its range if it has none.
func normal(c plan.Change) (plan.Change, error) {
	from, err1 := canonical(c.Knob, c.From)
	to, err2 := canonical(c.Knob, c.To)
	if err := errors.Join(err1, err2); err != nil {
		return c, err
	}
	lo, hi := from, to
	if sign, _ := order(c.Knob, lo, hi); sign > 0 {
		lo, hi = hi, lo
	}
	c.From, c.To, c.Min, c.Max = from, to, cmp.Or(c.Min, lo), cmp.Or(c.Max, hi)
	return c, nil
}

// claim makes sure that the journal has the original value of the file, and the quota beside a burst, and that the new
// value is in the claimed range. synced says that it had to wait for the disk.
func (w *Writer) claim(c plan.Change) (synced bool, err error) {
	e, ok := w.journal.Entry(c.Cgroup, c.Knob)
	if ok && !w.ours(e, c.From) && c.From != e.Original {
		// Our value was overwritten before the decision was made: the current value is the new original.
		if err := w.journal.Done(c.Cgroup, c.Knob); err != nil {
			return false, err
		}
		e, ok = journal.Entry{}, false
	}
	if !ok || !within(c.Knob, c.To, e.Min, e.Max) || c.Quota != "" && c.Quota != e.Quota {
		synced = true
		more := w.ownClaim(c)
		more.Period = cmp.Or(e.Period, more.Period)
		err = w.journal.Claim(more)
	}
	if err == nil {
		err = w.claimCompanion(c)
	}
	return synced, err
}

// intend records the value about to be written.
func (w *Writer) intend(c plan.Change) error {
	e, _ := w.journal.Entry(c.Cgroup, c.Knob)
	if w.ours(e, c.From) && c.From != e.Last {
		// The last intent was refused, or a crash came before its write. The journal keeps the last two intents, so the
		// current value must become one of them again.
		if err := w.journal.Intend(c.Cgroup, c.Knob, c.From); err != nil {
			return err
		}
	}
	return w.journal.Intend(c.Cgroup, c.Knob, c.To)
}

// write writes the value and reads it back. fresh: if it fails, the file holds no value of ours.
func (w *Writer) write(c plan.Change, fresh bool) (r plan.Result) {
	e, _ := w.journal.Entry(c.Cgroup, c.Knob)
	err := w.set(c)
	taken := took(err)
	defer func() { r.Taken = taken }()
	if errors.Is(err, syscall.ENOSPC) && c.Restore && c.Knob == plan.CPUs && c.To == "" {
		return w.free(c, err)
	}
	held, lookErr := w.look(c.Cgroup, c.Knob)
	back := func() bool { return err == nil && lookErr == nil && w.isBack(c, held) }
	for n := 1; n < writesAtMost && back(); n++ {
		err = w.set(c)
		taken += took(err)
		held, lookErr = w.look(c.Cgroup, c.Knob)
	}
	switch {
	case back():
		return w.result(c, plan.Refused, held, errBack)
	case isGone(lookErr):
		return w.ended(c, plan.Gone, "", lookErr)
	case err != nil && fresh && held == c.From:
		return w.ended(c, plan.Refused, held, w.explain(c, err))
	// The value was accepted, a later part of the write was not.
	case err != nil && lookErr == nil && held == c.To, lookErr != nil && errors.Is(err, cgroup.ErrBurst):
		return w.result(c, plan.Applied, held, err)
	case err != nil:
		return w.result(c, plan.Refused, held, w.explain(c, err))
	case lookErr != nil:
		return w.result(c, plan.Applied, "", fmt.Errorf("written, but it cannot be read back: %w", lookErr))
	case c.Restore && (held == c.To || held == Present(w.tree, e).Target()): // the kernel may have scaled it since
		r := w.ended(c, plan.Applied, held, nil)
		if c.Knob == plan.Burst {
			w.bursts = append(w.bursts, r)
		}
		return r
	case held == c.To:
		return w.result(c, plan.Applied, held, nil)
	case clamps(c, held):
		return w.result(c, plan.Clamped, held, w.journal.Intend(c.Cgroup, c.Knob, held))
	case w.holdsOurs(c, held):
		return w.result(c, plan.Trampled, held, fmt.Errorf("wrote %s, which the kernel has scaled to %s", c.To, held))
	}
	return w.ended(c, plan.Trampled, held, fmt.Errorf("wrote %s, and another program then %s", c.To, held))
}

// set writes the value of a change.
func (w *Writer) set(c plan.Change) error {
	if c.Knob == plan.Idle && c.To == "0" {
		return w.clearIdle(c.Cgroup)
	}
	return set(w.tree, c.Cgroup.Path, c.Knob, c.To)
}
