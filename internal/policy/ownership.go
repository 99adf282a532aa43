package policy

import "time"

// holdOf is what is known of one knob of one group: whose value stands in its file.
//
// Problem: kubelet, runtimes, systemd and people write the same files. A value that differs from ours may be the
// owner putting its declared limit back (systemd on daemon-reload, runc on update), a resize, or another agent at
// work, and each asks for another answer.
//
// Approach: the baseline is the declared limit where it is known, else what stood in the file before us.
//   - nothing of ours stands and the value changed: a resize, the new baseline;
//   - a value of ours stood and the baseline is back: a reset by the owner, to be applied again after a back-off;
//   - the value is the newly declared limit, be it equal to ours: a resize, never to be undone;
//   - any other value is foreign: left alone from the first moment, and reported once when it has stood for a moment,
//     for an owner may write the file before it declares the limit, or after.
//
// Known limits: a resize to exactly our value is seen only where the limit is declared. inotify does not help: it
// tells of a file that was opened to be written (O_TRUNC), also when the kernel then refused the write.
type holdOf[T comparable] struct {
	known   bool
	base    T
	wrote   T    // the last value of ours that the kernel took
	ours    bool // it stands, and is not the baseline
	foreign bool
	pending Event     // to be said of a foreign value once it has stood
	stood   time.Time // since when it stands
	retry   backoff
}

// settling is how long an owner may take between declaring a limit and writing it.
const settling = time.Second

// Event is what became of a knob between two turns.
type Event string

// The events.
const (
	noEvent   Event = ""
	Resized   Event = "resized"   // the limit is another one now; what we knew of the old is void
	Rebased   Event = "rebased"   // the declared limit changed while a value of ours stands
	Reset     Event = "reset"     // the owner put its limit back over ours
	Foreign   Event = "foreign"   // another program's value: left alone
	Deviation Event = "deviation" // at the first sight the file does not hold the declared limit
)

// observe compares what stands in the file with what is known. declared is nil where nobody but the file says.
func (h *holdOf[T]) observe(now time.Time, disk T, declared *T) Event {
	isDeclared := declared != nil && *declared == disk
	switch {
	case !h.known:
		return h.first(now, disk, declared)
	case h.foreign:
		if isDeclared || declared == nil && disk == h.base {
			*h = holdOf[T]{known: true, base: disk}
			return Resized
		}
		return h.say(now)
	case h.ours && disk == h.wrote:
		return h.redeclared(disk, declared)
	case h.ours && disk == h.base:
		h.ours = false
		h.retry.hit(now)
		return Reset
	case isDeclared || !h.ours && declared == nil:
		if disk != h.base {
			*h = holdOf[T]{known: true, base: disk, retry: h.retry}
			return Resized
		}
	case h.ours || disk != h.base:
		h.leave(now, Foreign)
	}
	return noEvent
}

func (h *holdOf[T]) first(now time.Time, disk T, declared *T) Event {
	h.known, h.base = true, disk
	if declared != nil && *declared != disk {
		h.base = *declared
		h.leave(now, Deviation)
	}
	return noEvent
}

// leave gives the knob up to another writer.
func (h *holdOf[T]) leave(now time.Time, e Event) {
	h.ours, h.foreign, h.pending, h.stood = false, true, e, now
}

// say tells of a foreign value, once.
func (h *holdOf[T]) say(now time.Time) Event {
	if h.pending == noEvent || now.Sub(h.stood) < settling {
		return noEvent
	}
	e := h.pending
	h.pending = noEvent
	return e
}

// redeclared follows a declared limit that changed while our value stands.
func (h *holdOf[T]) redeclared(disk T, declared *T) Event {
	if declared == nil || *declared == h.base {
		return noEvent
	}
	h.base = *declared
	if *declared == disk {
		h.ours = false
		return Resized
	}
	return Rebased
}

// learn books a value of ours that the kernel took.
func (h *holdOf[T]) learn(value T) {
	h.wrote = value
	h.ours = value != h.base
}
