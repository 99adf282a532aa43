package ledger

import (
	"time"

	"plimsoll/internal/plan"
)

// Plan makes changes of intents: what differs from what the file holds, and may be written now. An intent for the baseline of a
// file whose owner's write was lost is a repair.
func (l *Ledger) Plan(now time.Time, intents []plan.Intent) []plan.Change {
	changes := make([]plan.Change, 0, len(intents))
	for _, in := range intents {
		e := l.entries[in.Key]
		if e == nil || e.Blocked(now) != plan.Free || in.Value == e.Held && !in.Refill {
			continue
		}
		back := in.Value == e.Baseline
		changes = append(changes, plan.Change{Cgroup: in.ID, Knob: in.Knob, From: e.Held, To: in.Value, Min: in.Min, Max: in.Max, Why: in.Why,
			Refill: in.Refill, Restore: in.Release && back && e.State != Lost, Repair: back && e.State == Lost && !in.Refill})
	}
	return changes
}

// Learn books what became of changes, the first of which was begun at a time.
func (l *Ledger) Learn(begun time.Time, results []plan.Result) {
	for _, r := range results {
		e := l.entries[plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}]
		if e == nil {
			continue
		}
		switch r.Outcome {
		case plan.Applied, plan.Clamped:
			l.took(begun, e, r)
		case plan.Refused:
			e.Retry.hit(begun)
		}
	}
}

// took books a value that the kernel took.
func (l *Ledger) took(begun time.Time, e *Entry, r plan.Result) {
	if r.Change.Refill {
		if quota := l.entries[plan.Key{ID: r.Change.Cgroup, Knob: plan.Quota}]; quota != nil {
			quota.refilled = begun
		}
	}
	if r.InForce == "" || r.Change.Repair { // a repaired value is the owner's, and seen as such
		return
	}
	e.Wrote, e.Held = r.InForce, r.InForce
	e.State = Ours
	if r.InForce == e.Baseline {
		e.State = Untouched
	}
}

// Backoff is that of a file which another program writes too, or whose write the kernel refuses.
type Backoff struct{ plan.Backoff }

const (
	firstGap = time.Second
	maxGap   = time.Minute
)

func (b *Backoff) hit(now time.Time) { b.Hit(now, firstGap, maxGap) }
