package plan

import "plimsoll/internal/workload"

// Key is one knob of one group.
type Key struct {
	workload.ID
	Knob Knob
}

// Intent is what a decider wants a knob to hold. It knows nothing of journals, of other writers or of restores: the ledger
// makes changes of intents (ledger.Plan).
type Intent struct {
	Key
	Value Value
	Min   Value // the range that the decider may ever want here; journalled once
	Max   Value
	Why   string
	// Release: nothing of ours is wanted in the file any more, once it holds the baseline.
	Release bool
	// Refill: the value stands already, and is rewritten to refill the group's runtime.
	Refill bool
}

// Blocked says why a knob may not be written now; "": it may.
type Blocked string

// The reasons.
const (
	Free    Blocked = ""
	Foreign Blocked = "another program wrote it"
	Waiting Blocked = "waiting after a refused or overwritten write"
	Pending Blocked = "its owner is about to write the value that stands"
	NoTask  Blocked = "no task is in it yet"
)
