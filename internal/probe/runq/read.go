package runq

import (
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Sums is what the threads of a group did since it has a slot, in thread time. Running and Waiting go up to At and
// count threads that still do. The others are parts of waits that are over; only watched groups have them.
type Sums struct {
	At      time.Duration // CLOCK_MONOTONIC
	Running time.Duration // ran on a CPU, with the time that interrupts and the hypervisor took of that
	Waiting time.Duration // wanted one

	Own     time.Duration // kept by the limit of the group, or of one inside it
	Above   time.Duration // kept by a limit above it
	Idle    time.Duration // an idle CPU had to wake up
	Self    time.Duration // behind threads of the group itself
	Behind  time.Duration // behind others: see Pairs
	Phantom time.Duration // of Behind: an allowed CPU was idle
	Forced  time.Duration // of Behind: the other had its share of CPUs elsewhere
	Waking  time.Duration // of Behind: it woke while a slice was running
	Unnamed time.Duration // longer ago than a CPU remembers

	WaitsIRQ, WaitsSteal time.Duration          // the CPU that was waited for was interrupted, or taken away
	IRQ, Steal           time.Duration          // of Running
	Beside               [Classes]time.Duration // of Running: the core's other thread ran another group, of that class
	Waits                int64
}

// Retries of a read during a write: a write takes a few nanoseconds, and a second where a hypervisor takes the CPU away
// in the middle of it.
const (
	hurried = 20 // without a pause
	pause   = 200 * time.Microsecond
)

// again calls a reading until it is whole, or the time is over; once at least.
func again(end time.Duration, whole func() (bool, error)) error {
	for n := 0; ; n++ {
		if ok, err := whole(); ok || err != nil {
			return err
		}
		if monotonic() >= end {
			return io.ErrNoProgress
		}
		if n >= hurried {
			time.Sleep(pause)
		}
	}
}

// A reading is of one instant. A reading during which the reader had to wait is repeated, because waits that ended
// meanwhile are in it.
const (
	instant = 2 * time.Millisecond
	retries = 10
)

// Read sums up a group over all CPUs. The error is io.ErrNoProgress where the group's sums were written all the time
// that the reading may take: where many groups share cells, one may lose a cell during each walk over the CPUs.
func (p *Probe) Read(slot Slot, within time.Duration) (Sums, error) {
	end := monotonic() + within
	for n := 0; ; n++ {
		var s Sums
		err := again(end, func() (whole bool, err error) { s, whole, err = p.sum(slot, end); return whole, err })
		if err != nil {
			return Sums{}, fmt.Errorf("runq: read group in slot %d: %w", slot, err)
		}
		if now := monotonic(); n == retries || now-s.At < instant || now >= end {
			return s, nil
		}
	}
}

// sum is not whole where a cell of the group was given to another group meanwhile: its values are then in no part of
// the reading, or twice.
func (p *Probe) sum(slot Slot, end time.Duration) (s Sums, whole bool, err error) {
	s.At = monotonic()
	before, err := p.sharedCell(slot)
	if err != nil {
		return s, false, err
	}
	for row := range p.cpus {
		if err := p.add(&s, row, slot, end); err != nil {
			return s, false, err
		}
	}
	after, err := p.sharedCell(slot)
	s.add(after)
	return s, before.Version == before.Slot && before.Version == after.Version && after.Version == after.Slot, err
}

// sharedCell is the counts of a group's threads where it has no cell of a CPU; see struct cell in bpf/runq.bpf.c.
func (p *Probe) sharedCell(slot Slot) (c kernelCell, err error) {
	return c, copyOut(p.shared, &c, int64(slot)*int64(unsafe.Sizeof(c)))
}

// add adds a row: of a CPU with a sibling together with the part of its present turn.
func (p *Probe) add(s *Sums, row int, slot Slot, end time.Duration) error {
	var c kernelCell
	var beside [Classes]time.Duration
	err := again(end, func() (whole bool, err error) {
		if p.siblings[row] != 0 {
			c, beside, whole, err = p.overlap(row, slot, s.At, end)
			return whole, err
		}
		c, err = p.cell(row, slot, end)
		return true, err
	})
	if err != nil {
		return err
	}
	s.add(c)
	for class, d := range beside {
		s.Beside[class] += d
	}
	return nil
}

// cell reads the counts of a group's threads on a CPU: zero where another group has the cell.
func (p *Probe) cell(row int, slot Slot, end time.Duration) (c kernelCell, err error) {
	at := int64(p.place(row, slot)) * int64(unsafe.Sizeof(c))
	err = again(end, func() (bool, error) {
		var version uint32
		err := errors.Join(copyOut(p.cells, &c, at), copyOut(p.cells, &version, at))
		return c.Version == version && version%2 == 0, err
	})
	if Slot(c.Slot) != slot {
		c = kernelCell{}
	}
	return c, err
}

// place is place_of of bpf/runq.bpf.c.
func (p *Probe) place(row int, slot Slot) int {
	if slot >= First {
		slot = First + (slot-First)%(Slot(p.rowCells)-First)
	}
	return row*p.rowCells + int(slot)
}

// copyOut reads memory that the kernel shares: the types are those of its own tables, and decoding them field by
// field takes longer than the rest of a reading.
func copyOut[T any](m *ebpf.Memory, to *T, at int64) error {
	_, err := m.ReadAt(unsafe.Slice((*byte)(unsafe.Pointer(to)), unsafe.Sizeof(*to)), at)
	return err
}

// add adds one CPU's part. A thread may come on one CPU and leave on another, so that only the sums mean
// something.
func (s *Sums) add(c kernelCell) {
	now := uint64(s.At)
	s.Running += time.Duration(c.RunningN*now - c.RunningS)
	s.Waiting += time.Duration(c.WaitingN*now - c.WaitingS)
	for _, part := range []struct {
		to   *time.Duration
		from uint64
	}{
		{&s.Own, c.Own}, {&s.Above, c.Above}, {&s.Idle, c.Idle}, {&s.Self, c.Self}, {&s.Behind, c.Behind},
		{&s.Phantom, c.Phantom}, {&s.Forced, c.Forced}, {&s.Waking, c.Waking}, {&s.Unnamed, c.Unnamed},
		{&s.WaitsIRQ, c.WaitsIrq}, {&s.WaitsSteal, c.WaitsSteal}, {&s.IRQ, c.Irq}, {&s.Steal, c.Steal},
	} {
		*part.to += time.Duration(part.from)
	}
	for class, d := range c.Beside {
		s.Beside[class] += time.Duration(d)
	}
	s.Waits += int64(c.Waits)
}

// Lengths counts the waits of watched groups of a class that are over, by their length without what a limit took. The
// first counts those below 2 us, each further one twice as long ones, the last all from 8.4 s on.
func (p *Probe) Lengths(class Class) ([Buckets]int64, error) {
	var list [Buckets]int64
	for i := range list {
		var n uint64
		if err := p.objects.Lengths.Lookup(uint32(int(class)*Buckets+i), &n); err != nil {
			return list, fmt.Errorf("runq: read the lengths of waits: %w", err)
		}
		list[i] = int64(n)
	}
	return list, nil
}

// Pair is how long the threads of one group waited behind those of another, in waits that are over.
type Pair struct {
	Waiter, Runner                  Slot
	Behind, Phantom, Forced, Waking time.Duration // as in Sums
}

// Pairs lists which group waited for which, in no order.
func (p *Probe) Pairs() ([]Pair, error) {
	var list []Pair
	var key kernelPairKey
	var value kernelPair
	all := p.objects.Pairs.Iterate()
	for all.Next(&key, &value) {
		list = append(list, Pair{Slot(key.Waiter), Slot(key.Runner), time.Duration(value.Behind),
			time.Duration(value.Phantom), time.Duration(value.Forced), time.Duration(value.Waking)})
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("runq: list the pairs of waits: %w", err)
	}
	return list, nil
}

// Lost is what the full tables did not take: threads not counted, and waits without a name.
func (p *Probe) Lost() (tasks, pairs int64) {
	return count(p.objects.Unseen), count(p.objects.Unpaired)
}

// Missed is the number of switches without an event. The task that ran then is counted as the one before.
func (p *Probe) Missed() int64 { return count(p.objects.Missed) }

func count(v *ebpf.Variable) int64 {
	var n uint64
	if err := v.Get(&n); err != nil {
		return 0 // mapped memory, from 5.5 on
	}
	return int64(n)
}

func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // every kernel has this clock
	}
	return time.Duration(t.Nano())
}
