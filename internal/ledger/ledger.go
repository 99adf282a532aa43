// Package ledger answers, for each file that the agent may write, whose value the file holds.
//
// # Problem
//
// The kubelet, container runtimes, systemd and people write the same files as the agent. A value that differs from the
// agent's own may be the owner's limit put back (systemd at a daemon-reload, runc at an update), a resize, a write of the
// owner that the kernel refused or a refill undid, or another agent at work. Each asks for another answer.
//
// # Approach
//
// An entry keeps what is known of one file: what its owner declares (a pod's status, an OCI configuration, a property of
// systemd), the baseline to which a restore goes, and the last value of ours that the kernel took. See compares what the
// file holds now with the entry, and answers with a state and, once, with an event:
//
//   - the file holds the baseline: untouched. If a value of ours stood there, the owner put its own back (Reset), and ours is
//     written again after a back-off;
//   - it holds the value of ours that was written last: ours. If the owner is about to write the very same value, it is
//     provisional: neither written nor taken for the owner's until the owner confirms;
//   - it holds what the owner declares, or is about to: the owner's (Resized), never to be undone;
//   - it holds what the owner declared before, and nothing of ours: the owner's write was refused or undone. After lostAfter
//     it is lost (Lost), and the declared value is written in the owner's place (Repair);
//   - it holds any other value: foreign, left alone from the first moment, and reported once it has stood for settling.
//
// A knob of tasks is in no file, and tasks come and go: its sight counts the tasks that hold each value. Nothing in it is an
// owner's, and an intent alone makes the entry ours, for some tasks may have taken the value where the write was refused.
//
// Where two deciders have intents for one file, the one with the higher priority claims it.
//
// A ledger does no I/O and knows no clock. The journal is its twin on disk.
//
// # Terminology
//
// The owner is who may set the file's value: the kubelet, a runtime, systemd, a person. Declared is what the owner says
// elsewhere, next is what the owner is about to write and has not confirmed. The baseline is declared where that is known,
// and else what the file held before the agent.
//
// # Known limits
//
// A resize to exactly our value is seen only where the limit is declared. inotify does not help: it reports that a file was
// opened to be written (O_TRUNC), also when the kernel then refused the write.
package ledger

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Sight is what is known of one file at one moment.
type Sight struct {
	Held     plan.Value // what the file holds
	Declared plan.Value // what its owner declares; "": nobody does
	Next     plan.Value // what its owner is about to write, and has not confirmed; "": nothing
	// Follows: the owner writes new values of its own at times. A value over ours is the baseline then.
	Follows bool
	// Sheds: the CPUs that left the file since the last sight are offline, and the kernel has taken them out, for good
	// (cpuset.cpus on v1). What is left of a value is the same writer's.
	Sheds bool
	// Tasks is how many tasks of the group hold each value, in place of Held (plan.Knob.OfTasks).
	Tasks map[plan.Value]int
}

// Bandwidth is the sight of a group's quota or burst: what its files hold, and what its owner declares of the quota.
func Bandwidth(held cpu.Bandwidth, declared *workload.Declared, knob plan.Knob) Sight {
	if knob == plan.Burst {
		return Sight{Held: plan.Time(held.Burst)}
	}
	s := Sight{Held: plan.Time(held.Quota)}
	if declared != nil {
		s.Declared = plan.Time(declared.Bandwidth.Over(held.Period))
		if declared.Next != (cpu.Bandwidth{}) {
			s.Next = plan.Time(declared.Next.Over(held.Period))
		}
	}
	return s
}

// State says whose value a file holds.
type State string

// The states.
const (
	Untouched   State = "untouched"   // the baseline, and nothing of ours
	Ours        State = "ours"        // the last value of ours
	Provisional State = "provisional" // a value of ours that its owner is about to write, too
	Late        State = "late"        // what the owner declared before; its write may be under way
	Lost        State = "lost"        // the same, and for so long that the owner's write was refused or undone
	Foreign     State = "foreign"     // another program's value
)

// Event is what became of a file between two sights.
type Event string

// The events.
const (
	None      Event = ""
	Resized   Event = "resized"   // the baseline is another one; what was known of the old one is void
	Rebased   Event = "rebased"   // the declared value changed while a value of ours stands
	Reset     Event = "reset"     // the owner put its value back over ours
	Overrode  Event = "foreign"   // another program's value: left alone
	Deviation Event = "deviation" // at the first sight the file does not hold the declared value
	WasLost   Event = "lost"      // the owner's write was refused or undone
)

const (
	// settling is how long an owner may take between declaring a value and writing it.
	settling = time.Second
	// lostAfter is how long the owner may take to write a value after declaring it, before it is lost.
	lostAfter = 3 * time.Second
	// undoneBefore is how long before a value is declared its owner may have written it. A refill since then may have undone
	// the write: the kernel reads the quota before it takes the mutex when a burst is written (kernel/sched/core.c,
	// tg_set_cfs_burst), so a refill that overlaps the write of a quota sets the old quota again.
	undoneBefore = 5 * time.Second
)

// Entry is what is known of one file.
type Entry struct {
	State    State
	Baseline plan.Value // to which a restore goes
	Wrote    plan.Value // the last value of ours that the kernel took
	Held     plan.Value // what the file held at the last sight
	Declared plan.Value
	Intended plan.Value    // what was intended last, or the baseline while a value of ours is to go
	By       plan.Priority // of the intent that claims the file
	Retry    Backoff       // of writes that were refused, or overwritten by the owner
	Return   Backoff       // of restores that were refused
	Problem  string        // why the last write, or restore, was refused
	Resets   int64         // times that the owner put its value back over ours
	Refused  int64         // writes that were refused or overwritten
	Since    time.Time     // when the value that stands was first seen
	Leaving  bool          // nobody intends a value of ours any more, and the baseline is not back yet
	Unread   bool          // the file could not be read at the last try
	tasks    map[plan.Value]int
	since    time.Time // of the state, where its age counts
	report   Event     // of a foreign value, once it has stood for a while
	refilled time.Time // the last refill of the group began
	undone   bool      // a refill may have undone the owner's write
	knob     plan.Knob
	seen     plan.Value    // of ours, at the last sight
	recent   [2]plan.Value // of ours, that stood at the sight before this one and until this one
}

// Ours says whether a value of ours is in the file.
func (e *Entry) Ours() bool { return e.State == Ours || e.State == Provisional }

// InForce says whether the file was seen to hold what is intended, whoever wrote it.
func (e *Entry) InForce() bool { return !e.Unread && !e.Leaving && e.Held == e.Intended }

// standing is the value of ours that stands in the file; "": none.
func (e *Entry) standing() plan.Value {
	if e.Ours() {
		return e.Wrote
	}
	return ""
}

// Ledger keeps the entries.
type Ledger struct{ entries map[plan.Key]*Entry }

// New is an empty ledger.
func New() *Ledger { return &Ledger{entries: map[plan.Key]*Entry{}} }
