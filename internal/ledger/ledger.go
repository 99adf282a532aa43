// Package ledger answers, for each file that the agent may write, whose value the file holds.
//
// # Problem
//
// The kubelet, container runtimes, systemd and people write the same files as the agent. A value that differs from the
// agent's own may be the owner's limit put back (systemd at a daemon-reload, runc at an update), a resize, the old
// limit because the kernel refused the owner's write or a refill undid it, or the value of another agent. Each case
// needs a different answer.
//
// # Approach
//
// An entry keeps what is known about one file: the value that its owner declares (a pod's status, a runtime's state,
// a property of systemd), the baseline that a restore writes, and the last value that we wrote. See compares the
// current value of the file with the entry, and answers with a state and, once, with an event:
//
//   - the file holds the baseline: untouched. If it held a value of ours before, the owner put its own back (Reset),
//     and ours is written again after a back-off;
//   - it holds the value of ours that was written last: ours. If the owner is about to write the same value, it is
//     provisional: neither overwritten nor taken for the owner's until the owner confirms;
//   - it holds the value that the owner declares, or is about to declare: the owner's (Resized), never undone;
//   - it holds the value that the owner declared before, and not ours: the owner's write was refused or undone. After
//     lostAfter it is lost (Lost), and the agent writes the declared value for the owner (Repair);
//   - it holds any other value: foreign, left alone at once, and reported once it has been in the file for settling.
//
// The kernel may scale the period, quota and burst of a group (plan.Scale). Then every value that is known of the file
// counts scaled likewise, so that a restore keeps the owner's share of a CPU (scale.go).
//
// A knob of tasks is an attribute of each task of a group, not a file, and tasks come and go: its sight counts the
// tasks that have each value. No such value is an owner's. An intent alone makes the entry ours, because a write that
// was refused for some tasks may have succeeded for others.
//
// Where two deciders have intents for one file, the one with the higher priority claims it.
//
// A ledger does no I/O and reads no clock. The journal is its counterpart on disk.
//
// # Terminology
//
// The owner is the program or person that sets the file's value: the kubelet, a runtime, systemd, an administrator.
// Declared is the value that the owner states elsewhere; next is a value that the owner is about to write and has not
// confirmed. The baseline is the declared value where that is known, and else the value of the file before the agent's
// first write.
//
// # Known limits
//
// A resize to exactly our value is detected only where the limit is declared. inotify does not help: it reports that a
// file was opened for writing (O_TRUNC), even when the kernel then refused the write.
package ledger

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Sight is one observation of a file.
type Sight struct {
	InFile   plan.Value // what the file holds
	Declared plan.Value // what its owner declares; "": nothing
	Next     plan.Value // what its owner is about to write, and has not confirmed; "": nothing
	Rounded  bool       // Declared may be rounded up (workload.RoundedUp)
	// Period is the group's period, of a quota or burst.
	Period time.Duration
	// Follows: the owner writes new values from time to time. A value that replaces ours is the new baseline.
	Follows bool
	// Sheds: the CPUs that left the file since the last sight are offline, and the kernel has removed them permanently
	// (cpuset.cpus on v1). The rest of the value still has the same writer.
	Sheds bool
	// Tasks is how many tasks of the group have each value, in place of InFile (plan.Knob.OfTasks).
	Tasks map[plan.Value]int
}

// Bandwidth is the sight of a group's quota or burst: the value of its file, and the quota that its owner declares.
func Bandwidth(held cpu.Bandwidth, declared *workload.Declared, knob plan.Knob) Sight {
	if knob == plan.Burst {
		return Sight{InFile: plan.Time(held.Burst), Period: held.Period}
	}
	s := Sight{InFile: plan.Time(held.Quota), Period: held.Period}
	if declared != nil {
		s.Declared, s.Rounded = plan.Time(declared.Bandwidth.Over(held.Period)), declared.Rounded
		if declared.Next != (cpu.Bandwidth{}) {
			s.Next = plan.Time(declared.Next.Over(held.Period))
		}
	}
	return s
}

// Sights are the last sights of a group's quota and burst. A file that nobody has written since is seen without making
// the text of its value again.
type Sights struct {
	held         cpu.Bandwidth
	declared     *workload.Declared
	quota, burst Sight
}

// Of is the sight of the quota or burst: see Bandwidth.
func (s *Sights) Of(held cpu.Bandwidth, declared *workload.Declared, knob plan.Knob) Sight {
	if s.held != held || s.declared != declared {
		*s = Sights{held, declared, Bandwidth(held, declared, plan.Quota), Bandwidth(held, declared, plan.Burst)}
	}
	if knob == plan.Burst {
		return s.burst
	}
	return s.quota
}

// State says whose value a file holds.
type State string

// The states.
const (
	Untouched   State = "untouched"   // the baseline
	Ours        State = "ours"        // the last value of ours
	Provisional State = "provisional" // a value of ours that its owner is about to write, too
	Late        State = "late"        // the value that the owner declared before; the owner may be about to write
	Lost        State = "lost"        // the same, for so long that the owner's write must have been refused or undone
	Foreign     State = "foreign"     // another program's value
)

// Event is what happened to a file between two sights.
type Event string

// The events.
const (
	None      Event = ""
	Resized   Event = "resized"   // the baseline has changed, and the state of the old one is discarded
	Rebased   Event = "rebased"   // the declared value changed while a value of ours is in the file
	Reset     Event = "reset"     // the owner put its value back over ours
	Overrode  Event = "foreign"   // another program's value: left alone
	Deviation Event = "deviation" // at the first sight the file does not hold the declared value
	WasLost   Event = "lost"      // the owner's write was refused or undone
	CameBack  Event = "came back" // an owner's write of the quota put back a former burst of ours, or divided ours
	Scaled    Event = "scaled"    // the kernel has scaled the value with the period
)

const (
	// settling is how long an owner may take between declaring a value and writing it.
	settling = time.Second
	// lostAfter is how long the owner may take to write a value after declaring it, before it is lost.
	lostAfter = 3 * time.Second
	// undoneBefore is how long before declaring a value its owner may have written it. A refill since then may have
	// undone that write (apply/undone.go).
	undoneBefore = 5 * time.Second
	// backWithin is how long after a write of ours a burst that it replaced may be found in the file again
	// (apply/back.go): an owner's write may wait for a CPU, and the files of an idle group are read once a minute.
	backWithin = 2 * time.Minute
)

// Entry is what is known about one file.
type Entry struct {
	State    State
	Baseline plan.Value    // what a restore writes
	Wrote    plan.Value    // the last value of ours that the kernel accepted
	InFile   plan.Value    // what the file held at the last sight
	Intended plan.Value    // the last intent, or the baseline while a restore is pending
	By       plan.Priority // the priority of the intent that claims the file
	Retry    plan.Backoff  // after writes that were refused or overwritten
	Return   plan.Backoff  // after restores that were refused, and of a quota or burst also lowerings
	Problem  string        // why the last write, or restore, was refused
	Resets   int64         // times that the owner put its value back over ours
	Refused  int64         // writes that were refused or overwritten
	Since    time.Time     // when the current value was first seen
	Leaving  bool          // a restore is pending: no intent is left, and the baseline is not back yet
	Unread   bool          // the last reading failed
	tasks    map[plan.Value]int
	since    time.Time // when State was entered, for Late and Foreign
	report   Event     // to report of a foreign value, once it has been in the file for settling
	refilled time.Time // the last refill of the group began
	undone   bool      // a refill may have undone the owner's write
	knob     plan.Knob
	seen     plan.Value    // our value in the file at the last sight
	recent   [2]plan.Value // our values in the file at the sight before the last, and until the last
	replaced plan.Value    // of a burst: our value before our last write
	wroteAt  time.Time     // when that write began
	period   time.Duration // of a quota or burst: the period that its owner wrote
	scale    int64         // by what the kernel has scaled the period since, and the values here with it
}

// Ours says whether a value of ours is in the file.
func (e *Entry) Ours() bool { return e.State == Ours || e.State == Provisional }

// InForce says whether the file was seen to hold the intended value, whichever program wrote it.
func (e *Entry) InForce() bool { return !e.Unread && !e.Leaving && e.InFile == e.Intended }

// ourValue is the value of ours in the file; "": none.
func (e *Entry) ourValue() plan.Value {
	if e.Ours() {
		return e.Wrote
	}
	return ""
}

// Ledger holds the entries of all files.
type Ledger struct{ entries map[plan.Key]*Entry }

// New is an empty ledger.
func New() *Ledger { return &Ledger{entries: map[plan.Key]*Entry{}} }
