package plan

import (
	"time"

	"plimsoll/internal/workload"
)

// Key is one knob of one group.
type Key struct {
	workload.ID
	Knob Knob
}

// Intent is what a decider wants a knob to hold. It knows nothing of journals, of other writers or of restores: the
// ledger makes changes of intents (ledger.Plan).
type Intent struct {
	Key
	Value Value
	Min   Value // the range that the decider may ever want here; journalled once
	Max   Value
	Why   string
	// Priority settles two intents for one file.
	Priority Priority
	// Release: nothing of ours is wanted in the file any more, once it holds the baseline.
	Release bool
	// Refill: the value stands already, and is rewritten to refill the group's runtime.
	Refill bool
}

// Priority is that of the decider. While the intent of one claims a file,
// an intent of a lower one is not carried out there.
type Priority int

// The priorities, the lowest first. A pause, a resize that is about to come and exclusive CPUs outrank both: colocation
// has no intent for such a file.
const (
	ForBandwidth Priority = iota
	ForColocation
)

// Blocked says why a knob may not be written now; "": it may.
type Blocked string

// The reasons.
const (
	Free    Blocked = ""
	Foreign Blocked = "another program wrote it"
	Waiting Blocked = "waiting after a refused or overwritten write"
	// NoRaise: the write was a raise. The quota or burst may be lowered, and the baseline restored.
	NoRaise Blocked = "waiting after a refused or overwritten raise"
	Pending Blocked = "its owner is about to write the value that stands"
	NoTask  Blocked = "no task is in it yet"
	// Suppressed: the colocation of online and offline work claims the file.
	Suppressed Blocked = "suppression of offline work bounds it"
	Unread     Blocked = "cannot be read"
)

// LeftAlone says whether the file holds a value that is neither the owner's nor the decider's, and which is to stay.
func (b Blocked) LeftAlone() bool { return b == Foreign || b == Suppressed }

// NotRaised says whether a raise would wait.
func (b Blocked) NotRaised() bool { return b == Waiting || b == NoRaise }

// Allows says whether a quota or burst may be written; limit is its baseline.
func (b Blocked) Allows(from, to, limit time.Duration) bool {
	return b == Free || b == NoRaise && (to < from || to == limit)
}
