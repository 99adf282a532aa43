package probe

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/programs"
)

// Options of a probe; the zero value is a good one.
type Options struct {
	Groups   int  // how many can be watched; 0: 8192
	Rate     int  // events a second that a group may send in the long run; 0: 200
	Ring     int  // bytes of the ring of events, a power of two and a multiple of the page size; 0: 256 KiB
	Realtime bool // the thread that reads runs before all others, where that is allowed
	Use      bool // what limited groups use in each of their periods: see Totals
	Ahead    bool // events of kind Dry
	Stats    bool // the kernel measures what the programs cost, for all programs of the machine: see Cost

	types  *btf.Cache                 // the kernel's type information; nil: read by Open
	change func(*ebpf.CollectionSpec) // tests break the programs with it
	kernel *btf.Spec                  // and the type information
}

// Probe is a set of programs in the kernel. They are gone with the process that opened it.
type Probe struct {
	objects  objects
	programs *programs.Set
	missing  []Missing
	ring     *Ring
	records  *ringbuf.Reader // of periods; nil: see ErrNoPeriods
	realtime bool
	priority atomic.Pointer[priority]

	reading sync.Mutex
	scratch kernelGroup // of Totals: a thousand bytes for each of a thousand groups are garbage

	recorded sync.Mutex
	record   ringbuf.Record
	unread   []Period // when the probe was closed

	mu        sync.Mutex
	watched   map[uint64]bool
	orders    map[uint64]kernelOrder // in the programs' map
	forgotten uint64
}

// objects are the parts of the loaded collection that are used by name.
type objects struct {
	kernelMaps
	kernelVariables
}

// Open loads the programs and attaches them. It fails where the kernel refuses the one that reports throttles; what
// else it refuses, to load or to attach, is in Missing. Explain says what can be done about its error, and the
// verifier's log is in it: fmt.Printf("%+v", e) with e an *ebpf.VerifierError.
func Open(o Options) (*Probe, error) {
	p := &Probe{watched: map[uint64]bool{}, orders: map[uint64]kernelOrder{}, realtime: o.Realtime}
	if err := p.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("probe: %w", err), p.Close())
	}
	return p, nil
}

func (p *Probe) open(o Options) error {
	if o.types == nil {
		o.types = btf.NewCache()
	}
	if err := o.preemptible(); err != nil {
		return err
	}
	spec, err := loadKernel()
	if err != nil {
		return err
	}
	if err := o.apply(spec); err != nil {
		return err
	}
	if err := p.load(spec, o); err != nil {
		return err
	}
	if p.ring, err = OpenRing(p.objects.Events); err != nil {
		return err
	}
	if err = p.attach(p.programs.AttachOne, o.Use); err != nil {
		return err
	}
	return p.openRecords(o)
}

// apply writes the options into the programs before they are loaded.
func (o Options) apply(spec *ebpf.CollectionSpec) error {
	if o.Groups == 0 {
		o.Groups = 8192
	}
	for _, name := range []string{kernelMapGroups, kernelMapOrders} {
		spec.Maps[name].MaxEntries = uint32(o.Groups)
	}
	for _, name := range []string{kernelMapStanding, kernelMapForeseen} { // of which fewer are at the same time
		spec.Maps[name].MaxEntries = uint32(min(o.Groups, 4096))
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	spec.Maps[kernelMapQueues].MaxEntries = queues(o.Groups, cpus)
	if o.Ring > 0 {
		spec.Maps[kernelMapEvents].MaxEntries = uint32(o.Ring)
	}
	if err := o.constants(spec, cpus); err != nil {
		return err
	}
	if o.change != nil {
		o.change(spec)
	}
	return nil
}

// queues is how many queues of groups are kept: one for each CPU that has run a group, and so one a group on average
// at least. Of a group for which there is no room no use is known (place in bpf/queue.h).
func queues(groups, cpus int) uint32 { return uint32(max(groups, min(groups*cpus, 24576))) }

// constants sets the numbers that the verifier treats as constants.
func (o Options) constants(spec *ebpf.CollectionSpec, cpus int) error {
	tick, err := Tick()
	if err != nil {
		return err
	}
	interval := defaultInterval
	if o.Rate > 0 {
		interval = time.Second / time.Duration(o.Rate)
	}
	for name, value := range map[string]any{
		kernelVarInterval: uint64(interval),
		kernelVarAdvance:  uint64(20 * interval), // 21 events in a row
		kernelVarHorizon:  uint64(tick + refill),
		kernelVarStep:     uint64(max(tick, refill)),
		kernelVarSlice:    uint64(slice()),
		kernelVarCpus:     uint32(cpus),
		kernelVarWords:    uint32(min(maxWords, (cpus+63)/64)),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// maxWords is WORDS of bpf/group.h: the use of a group on CPUs from the 1,025th on is not counted.
const maxWords = 16

// A group whose pool was empty on one CPU and not on another may be released and throttled again several times in a
// millisecond: each refill of a quota of one slice goes to the CPU that takes it first. The cap ends that within a
// period, after fewer than 21 (lab/reaction has seen 8). In the long run the kernel itself returns unused slices
// 200 times a second at most (kernel/sched/fair.c, cfs_bandwidth_slack_period).
const (
	defaultInterval = time.Second / 200    // between two events of a group in the long run
	refill          = 2 * time.Millisecond // the longest time from the event to the refill by user space
)

// Tick is the kernel's. The coarse clocks go by it (kernel/time/posix-timers.c, posix_get_coarse_res).
func Tick() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &t); err != nil {
		return 0, fmt.Errorf("read the resolution of CLOCK_MONOTONIC_COARSE: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// slice is how much runtime a CPU takes from a group's pool at a time (kernel.sched_cfs_bandwidth_slice_us).
func slice() time.Duration {
	text, err := os.ReadFile("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")
	if us, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && us > 0 {
		return time.Duration(us) * time.Microsecond
	}
	return 5 * time.Millisecond // kernel/sched/fair.c
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

// SuppressEvents stops the events of a group, whose throttles are still counted, until it is called with false or the
// group is forgotten. A group that is not watched sends no events anyhow.
func (p *Probe) SuppressEvents(group uint64, suppress bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if suppress && !p.watched[group] {
		return nil
	}
	return p.suppressEvents(group, suppress)
}

func (p *Probe) suppressEvents(group uint64, suppress bool) error {
	o := p.orders[group]
	o.Suppressed = 0
	if suppress {
		o.Suppressed = 1
	}
	if err := p.order(group, o); err != nil {
		return fmt.Errorf("probe: suppress events of group %d %v: %w", group, suppress, err)
	}
	return nil
}

// Limit sets the quota by which the uses of a group are counted, where another one is in force.
func (p *Probe) Limit(group uint64, quota time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.orders[group]
	o.Limit = uint64(quota)
	if err := p.order(group, o); err != nil {
		return fmt.Errorf("probe: limit of group %d: %w", group, err)
	}
	return nil
}

// order tells the programs what holds for a group.
func (p *Probe) order(group uint64, o kernelOrder) error {
	if o == p.orders[group] {
		return nil
	}
	if o == (kernelOrder{}) {
		err := p.objects.Orders.Delete(group)
		if err == nil || errors.Is(err, ebpf.ErrKeyNotExist) {
			delete(p.orders, group)
			return nil
		}
		return err
	}
	if err := p.objects.Orders.Put(group, o); err != nil {
		return err
	}
	p.orders[group] = o
	return nil
}

// forget drops a group. The programs compare the throttles that last with those begun, ended and forgotten, to know
// whether there is an end to wait for. A program that saw the group before its removal searches for the group again
// when it has put an entry into Foreseen or Standing: so the group is removed before its entries there.
func (p *Probe) forget(id uint64) error {
	if err := p.order(id, kernelOrder{}); err != nil {
		return err
	}
	var known kernelGroup
	if err := p.objects.Groups.Lookup(id, &known); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	if err := p.objects.Groups.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	if err := p.objects.Foreseen.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	if err := p.forgetQueues(id, known); err != nil {
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

// forgetQueues drops the queues of a group that is forgotten. One that a program puts there at this very instant
// stays until the group is watched again, runs on that CPU, and is forgotten.
func (p *Probe) forgetQueues(id uint64, g kernelGroup) error {
	for word, mask := range g.Known {
		for ; mask != 0; mask &= mask - 1 {
			key := kernelQueueKey{Group: id, Cpu: uint64(64*word + bits.TrailingZeros64(mask))}
			if err := p.objects.Queues.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return err
			}
		}
	}
	return nil
}

// ClockMaps are where the throttled time of the watched groups is read, by other programs (package requests).
func (p *Probe) ClockMaps() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{kernelMapGroups: p.objects.Groups, kernelMapStanding: p.objects.Standing}
}

// Close removes the programs from the kernel and ends Read.
func (p *Probe) Close() error {
	err := p.programs.Close()
	if p.ring != nil {
		err = errors.Join(err, p.ring.Close())
	}
	return errors.Join(err, p.closeRecords(), p.objects.Close())
}

// Monotonic is the clock of the events' times.
func Monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // every kernel has this clock
	}
	return time.Duration(t.Nano())
}
