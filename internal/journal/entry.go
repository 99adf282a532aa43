package journal

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Entry is one knob of one group in which a value of ours may stand.
type Entry struct {
	workload.ID
	Knob     plan.Knob
	Original plan.Value // what stood there before our first write
	Baseline plan.Value // the declared limit; empty when not known
	Min, Max plan.Value // the range that may be written without another claim
	Last     plan.Value // the newest intent; Original before the first
	Prev     plan.Value // the intent before: a crash may lie between an intent and its write
	Period   plan.Value // of a quota or burst: the period that all these values are of; empty when not known
	Quota    plan.Value // of a burst: the quota that the group's owner had written; empty when not known
	Since    time.Time  // of the claim
	intents  int
}

// Ours says whether a value that stands in the file was written by us.
func (e Entry) Ours(held plan.Value) bool {
	return e.intents > 0 && held == e.Last || e.intents > 1 && held == e.Prev
}

// In is the entry for a group whose files hold b: where the kernel has scaled a value of the entry with the period
// (plan.Scale), all values are scaled.
func (e Entry) In(b cpu.Bandwidth) Entry {
	held := plan.Time(b.Quota)
	if e.Knob == plan.Burst {
		held = plan.Time(b.Burst)
	}
	if s := e.scaled(plan.Time(b.Period)); s.Ours(held) || s.Original == held {
		return s
	}
	return e
}

// scaled is the entry after the kernel has scaled its period to this one.
func (e Entry) scaled(period plan.Value) Entry {
	before, err1 := e.Period.Time()
	now, err2 := period.Time()
	if err1 != nil || err2 != nil {
		return e
	}
	n := plan.Scale(before, now)
	if n == 1 {
		return e
	}
	for _, v := range []*plan.Value{&e.Original, &e.Baseline, &e.Min, &e.Max, &e.Last, &e.Prev, &e.Period,
		&e.Quota} {
		*v = v.Times(n)
	}
	return e
}

// Key is the knob that the entry is about.
func (e Entry) Key() plan.Key { return plan.Key{ID: e.ID, Knob: e.Knob} }

// Written says whether a value was ever about to be written: before that the entry is a mere claim.
func (e Entry) Written() bool { return e.intents > 0 }

// Target is what a restore goes to: the declared limit where it is known, else the original.
func (e Entry) Target() plan.Value {
	if e.Baseline != "" {
		return e.Baseline
	}
	return e.Original
}
