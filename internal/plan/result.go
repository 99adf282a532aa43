package plan

import (
	"time"

	"plimsoll/internal/cpu"
)

// Outcome is what became of an attempted write.
type Outcome string

// The outcomes.
const (
	Applied  Outcome = "applied"
	Clamped  Outcome = "clamped"  // the kernel took another value
	Refused  Outcome = "refused"  // EINVAL, EPERM, EROFS ...
	Trampled Outcome = "trampled" // the file no longer held what the decision was based on
	Gone     Outcome = "gone"     // the group is gone, or another one stands in its place: a normal outcome
	Skipped  Outcome = "skipped"  // held by the kill switch, or nothing to do
)

// Outcomes lists all outcomes, in the order in which they are reported.
func Outcomes() []Outcome { return []Outcome{Applied, Clamped, Refused, Trampled, Gone, Skipped} }

// Result is one change and what became of it.
type Result struct {
	Change  Change    `json:"change"`             // what was tried
	Outcome Outcome   `json:"outcome"`            // what became of it (Outcomes of a write)
	InForce Value     `json:"in_force,omitempty"` // what the file held after the write
	Err     string    `json:"error,omitempty"`    // why it failed
	At      time.Time `json:"at"`                 // when
	Taken   int       `json:"-"`                  // how many writes the kernel took, whatever the file held after them
}

// Bandwidth is what a group's files hold after a change of the quota or burst, if they held b before; false: the value
// in force is not known.
func (r Result) Bandwidth(b cpu.Bandwidth) (cpu.Bandwidth, bool) {
	d, err := r.InForce.Time()
	switch {
	case err != nil || !r.Change.Knob.OfBandwidth():
		return b, false
	case r.Change.Knob == Burst:
		b.Burst = d
	default:
		b.Quota = d
	}
	return b, true
}
