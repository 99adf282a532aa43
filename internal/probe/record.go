package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

// Period is one period of a watched group with a limit, as it ended. A group that sleeps has none.
type Period struct {
	Group     uint64
	End       time.Duration // CLOCK_MONOTONIC
	Used      time.Duration // CPU time, up to the last tick of each CPU: what came after it is in the next period
	Quota     time.Duration // in force at the end; an amount above 71 minutes is 71 minutes
	Lost      time.Duration // wall time that the group was throttled
	Throttles int           // begun
	Count     int           // of periods in this one: more than one where the kernel's timer was late
}

// ErrNoPeriods says that this probe does not see the ends of periods: without Options.Use,
// or where PartPeriods is Missing.
var ErrNoPeriods = errors.New("the ends of periods are not seen")

// Record has the kernel record each period from the next one on, or stop. What that costs BenchmarkRecord measures;
// while it is off it costs a comparison a period. Periods reads the records.
func (p *Probe) Record(on bool) error {
	if p.records == nil {
		return ErrNoPeriods
	}
	var value uint64
	if on {
		value = 1
	}
	if err := p.objects.Recording.Set(value); err != nil {
		return fmt.Errorf("probe: record periods %v: %w", on, err)
	}
	return nil
}

// Periods appends the periods that have ended since the last call, in the order of their ends for each group. It waits
// for none. The ring has room for 6,500: at 10 a second for each of 1,300 groups, half a second. After Close the first
// call has those that nobody had read.
func (p *Probe) Periods(list []Period) ([]Period, error) {
	if p.records == nil {
		return list, ErrNoPeriods
	}
	p.recorded.Lock()
	defer p.recorded.Unlock()
	if len(p.unread) > 0 {
		list, p.unread = append(list, p.unread...), nil
		return list, nil
	}
	return p.readPeriods(list)
}

func (p *Probe) readPeriods(list []Period) ([]Period, error) {
	// Long ago: it waits for none. Its AvailableBytes would spare a system call, and must not be asked beside Close.
	p.records.SetDeadline(time.Unix(1, 0))
	for range maxPeriods {
		switch err := p.records.ReadInto(&p.record); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return list, nil
		case err != nil:
			return list, fmt.Errorf("probe: read periods: %w", err)
		}
		one, err := decodePeriod(p.record.RawSample)
		if err != nil {
			return list, fmt.Errorf("probe: %w", err)
		}
		list = append(list, one)
	}
	return list, nil
}

// closeRecords closes the ring, to which no program writes any more, and keeps what is in it.
func (p *Probe) closeRecords() (err error) {
	if p.records == nil {
		return nil
	}
	p.recorded.Lock()
	defer p.recorded.Unlock()
	p.unread, err = p.readPeriods(p.unread)
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, p.records.Close())
}

// Unrecorded counts the periods for which the ring had no room, since Open.
func (p *Probe) Unrecorded() int64 { return count(p.objects.Unrecorded) }

// openRecords opens the ring where the programs that fill it are attached.
func (p *Probe) openRecords(o Options) error {
	if !o.Use || slices.ContainsFunc(p.missing, func(m Missing) bool { return m.Part == PartPeriods }) {
		return nil
	}
	var err error
	if p.records, err = ringbuf.NewReader(p.objects.Recorded); err != nil {
		return fmt.Errorf("open the ring of periods: %w", err)
	}
	return nil
}

const (
	periodSize = 32      // of struct period in bpf/period.h
	maxPeriods = 1 << 15 // that one call reads: more than the ring holds
)

// decodePeriod reads a record, as decode does.
func decodePeriod(raw []byte) (Period, error) {
	if len(raw) != periodSize {
		return Period{}, fmt.Errorf("decode period: %d bytes, want %d", len(raw), periodSize)
	}
	us := func(at int) time.Duration {
		return time.Duration(binary.LittleEndian.Uint32(raw[at:])) * time.Microsecond
	}
	end, n := binary.LittleEndian.Uint64(raw[8:]), binary.LittleEndian.Uint16(raw[30:])
	if end >= math.MaxInt64 || n == 0 {
		return Period{}, fmt.Errorf("decode period: a number is out of range: % x", raw)
	}
	return Period{Group: binary.LittleEndian.Uint64(raw), End: time.Duration(end), Used: us(16), Quota: us(20),
		Lost: us(24), Throttles: int(binary.LittleEndian.Uint16(raw[28:])), Count: int(n)}, nil
}
