package probe

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"plimsoll/internal/cpu"
)

// Kind is the kind of an event.
type Kind uint32

const (
	Begin Kind = 1 // the group is throttled
	End   Kind = 2 // a task of the group runs again
	Dry   Kind = 3 // the group will be throttled before its period ends, unless its load changes
)

func (k Kind) String() string {
	switch k {
	case Begin:
		return "begin"
	case End:
		return "end"
	case Dry:
		return "dry"
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// NoSnap is Facts.Snap where the kernel does not keep it, and NoUse is Facts.Used without Options.Use, or before the
// end of a first period was seen.
const (
	NoSnap time.Duration = -1
	NoUse  time.Duration = -1
)

// Facts is what the kernel knows of a group's bandwidth at the instant of an event (struct cfs_bandwidth).
type Facts struct {
	Quota   time.Duration // cpu.Unlimited where there is none
	Period  time.Duration
	Burst   time.Duration // 0 below 5.14, which has none
	Runtime time.Duration // left in the pool; a part of it may be on CPUs already
	Snap    time.Duration // Runtime after the last refill; NoSnap below 5.16
	Expires time.Duration // when the period ends, CLOCK_MONOTONIC; 0 while no timer runs
	Periods int64         // nr_periods of cpu.stat
	Used    time.Duration // CPU time since the period began, or some more; NoUse where that was not seen
	OnCPUs  time.Duration // taken from the pool by CPUs and not used
}

// Event is a throttle's begin or end, or word of one that is to come.
type Event struct {
	Group uint64 // inode of the control group's directory, in the cpu hierarchy on v1
	Kind  Kind
	CPU   int           // Begin: where the group is throttled; End and Dry: where it runs
	At    time.Duration // CLOCK_MONOTONIC, see Monotonic
	Since time.Duration // when this throttle began, or is to begin, on the same clock
	Facts Facts         // not of an End
}

// eventSize is that of struct event in bpf/throttle.bpf.c.
const eventSize = 104

// decode reads a record of the ring. The kernel's byte order is the machine's, and only little-endian ones are built
// for (kernel_bpfel.go).
func decode(raw []byte) (Event, error) {
	if len(raw) != eventSize {
		return Event{}, fmt.Errorf("decode event: %d bytes, want %d", len(raw), eventSize)
	}
	w := words{raw: raw}
	e := Event{Group: w.next(), At: w.time(), Since: w.time()}
	word := w.next()
	e.Kind, e.CPU = Kind(uint32(word)), int(word>>32)
	e.Facts = Facts{
		Quota: w.quota(), Period: w.time(), Burst: w.time(), Runtime: w.time(),
		Snap: w.known(NoSnap), Expires: w.time(), Periods: int64(w.time()),
		Used: w.known(NoUse), OnCPUs: w.time(),
	}
	if e.Kind < Begin || e.Kind > Dry {
		return Event{}, fmt.Errorf("decode event: %v", e.Kind)
	}
	if w.bad {
		return Event{}, fmt.Errorf("decode event: a number is out of range: % x", raw)
	}
	return e, nil
}

// words reads numbers of 64 bits. bad: one was out of range.
type words struct {
	raw []byte
	bad bool
}

func (w *words) next() uint64 {
	v := binary.LittleEndian.Uint64(w.raw)
	w.raw = w.raw[8:]
	return v
}

func (w *words) time() time.Duration {
	v := w.next()
	w.bad = w.bad || v >= math.MaxInt64
	return time.Duration(v)
}

// quota knows the kernel's RUNTIME_INF.
func (w *words) quota() time.Duration {
	if binary.LittleEndian.Uint64(w.raw) == math.MaxUint64 {
		w.next()
		return cpu.Unlimited
	}
	return w.time()
}

// known knows the programs' UNKNOWN.
func (w *words) known(unknown time.Duration) time.Duration {
	if binary.LittleEndian.Uint64(w.raw) == math.MaxUint64 {
		w.next()
		return unknown
	}
	return w.time()
}
