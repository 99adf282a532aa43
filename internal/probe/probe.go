package probe

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Options of a probe; the zero value is a good one.
type Options struct {
	Groups   int  // how many can be watched; 0: 8192
	Rate     int  // events a second that a group may send in the long run; 0: 200
	Ring     int  // bytes of the ring of events, a power of two and a multiple of the page size; 0: 256 KiB
	Realtime bool // the thread that reads runs before all others, where that is allowed
	Stats    bool // the kernel measures what the programs cost, for all programs of the machine: see Cost

	change func(*ebpf.CollectionSpec) // tests break the programs with it
}

// Probe is a set of programs in the kernel. They are gone with the process that opened it.
type Probe struct {
	objects  kernelObjects
	links    []link.Link
	stats    io.Closer
	ring     *ringbuf.Reader
	record   ringbuf.Record
	batch    []Event
	broken   atomic.Int64
	realtime bool
	priority atomic.Pointer[string]

	mu        sync.Mutex
	watched   map[uint64]bool
	forgotten uint64
}

// Open loads the programs and attaches them. Explain says what can be done about its error, and the verifier's log is
// in it: fmt.Printf("%+v", e) with e an *ebpf.VerifierError.
func Open(o Options) (*Probe, error) {
	p := &Probe{watched: map[uint64]bool{}, realtime: o.Realtime}
	if err := p.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("probe: %w", err), p.Close())
	}
	return p, nil
}

func (p *Probe) open(o Options) error {
	spec, err := loadKernel()
	if err != nil {
		return err
	}
	if err := o.apply(spec); err != nil {
		return err
	}
	// From 5.11 on memory is charged to the control group. Below, a refusal shows in the error of the load.
	limit := rlimit.RemoveMemlock()
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		return errors.Join(fmt.Errorf("load programs: %w", err), limit)
	}
	if o.Stats {
		if p.stats, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
			return fmt.Errorf("enable statistics: %w", err)
		}
	}
	if p.ring, err = ringbuf.NewReader(p.objects.Events); err != nil {
		return fmt.Errorf("open the ring of events: %w", err)
	}
	for _, program := range p.programs() {
		l, err := link.AttachTracing(link.TracingOptions{Program: program.Program})
		if err != nil {
			return fmt.Errorf("attach %s: %w", program.name, err)
		}
		p.links = append(p.links, l)
	}
	return nil
}

// apply writes the options into the programs before they are loaded.
func (o Options) apply(spec *ebpf.CollectionSpec) error {
	if o.Groups > 0 {
		spec.Maps[kernelMapGroups].MaxEntries = uint32(o.Groups)
		spec.Maps[kernelMapStanding].MaxEntries = uint32(o.Groups)
		spec.Maps[kernelMapMuted].MaxEntries = uint32(o.Groups)
	}
	if o.Ring > 0 {
		spec.Maps[kernelMapEvents].MaxEntries = uint32(o.Ring)
	}
	if o.Rate > 0 { // up to 21 in a row, as by default
		interval := time.Second / time.Duration(o.Rate)
		err := errors.Join(spec.Variables[kernelVarInterval].Set(uint64(interval)), spec.Variables[kernelVarAdvance].Set(uint64(20*interval)))
		if err != nil {
			return fmt.Errorf("set the rate: %w", err)
		}
	}
	if o.change != nil {
		o.change(spec)
	}
	return nil
}

// program is a loaded program and the tracepoint that it is for.
type program struct {
	name string
	*ebpf.Program
}

func (p *Probe) programs() []program {
	return []program{
		{kernelProgSchedSwitch, p.objects.SchedSwitch},
		{kernelProgSchedWakeup, p.objects.SchedWakeup},
		{kernelProgSchedWakeupNew, p.objects.SchedWakeupNew},
		{kernelProgSchedMigrateTask, p.objects.SchedMigrateTask},
	}
}

// Watch says which groups matter, all of them: one that was watched and is not named any more is forgotten with its
// totals.
func (p *Probe) Watch(groups []uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := make(map[uint64]bool, len(groups))
	for _, id := range groups {
		wanted[id] = true
	}
	for id := range p.watched {
		if wanted[id] {
			continue
		}
		if err := p.forget(id); err != nil {
			return fmt.Errorf("probe: forget group %d: %w", id, err)
		}
	}
	for id := range wanted {
		if p.watched[id] {
			continue
		}
		if err := p.objects.Groups.Put(id, kernelGroup{}); err != nil {
			return fmt.Errorf("probe: watch group %d beside %d others: %w", id, len(p.watched), err)
		}
		p.watched[id] = true
	}
	return nil
}

// Mute has the throttles of a group counted, but not told, until it is unmuted or forgotten.
func (p *Probe) Mute(group uint64, mute bool) error {
	var err error
	if mute {
		err = p.objects.Muted.Put(group, uint8(1))
	} else if err = p.objects.Muted.Delete(group); errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("probe: mute group %d %v: %w", group, mute, err)
	}
	return nil
}

// forget drops a group. The programs compare what stands with what was begun, ended and forgotten, to know whether there
// is an end to wait for.
func (p *Probe) forget(id uint64) error {
	if err := p.Mute(id, false); err != nil {
		return err
	}
	if err := p.objects.Groups.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	delete(p.watched, id)
	err := p.objects.Standing.Delete(id)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.forgotten++
	return p.objects.Forgotten.Set(p.forgotten)
}

// Close takes the programs out of the kernel and ends Read.
func (p *Probe) Close() error {
	var list []error
	for _, l := range p.links {
		list = append(list, l.Close())
	}
	if p.ring != nil {
		list = append(list, p.ring.Close())
	}
	if p.stats != nil {
		list = append(list, p.stats.Close())
	}
	list = append(list, p.objects.Close())
	return errors.Join(list...)
}

// Monotonic is the clock of the events' times.
func Monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // every kernel has this clock
	}
	return time.Duration(t.Nano())
}
