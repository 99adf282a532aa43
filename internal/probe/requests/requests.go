package requests

import (
	"cmp"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/probe/programs"
	"plimsoll/internal/responsetime"
)

// Options of a probe; the zero value is a good one.
type Options struct {
	Groups int  // how many can be followed; 0: 512
	Stats  bool // the kernel measures what the programs cost: see Cost

	kernel *btf.Spec // tests have another kernel's type information
}

// Probe is a set of programs in the kernel. They are gone with the process that opened it. It is not for use by several
// goroutines at once.
type Probe struct {
	objects  objects
	programs *programs.Set
	clock    error // why no throttled time is known; nil: it is
	counts   *ebpf.Memory
	rows     int
	slots    map[uint64]uint32
	next     uint32
	free     []uint32 // of groups that were forgotten, in that order
	revision uint32
}

type objects struct {
	kernelMaps
	kernelVariables
}

// ErrTracepoint is an error of Open: the kernel cannot tell of requests at all.
var ErrTracepoint = errors.New("this kernel has no such tracepoint")

// Open loads the programs. probe.Explain says what can be done about its error, where it is not ErrTracepoint.
func Open(o Options) (*Probe, error) {
	p := &Probe{slots: map[uint64]uint32{}, next: 1, revision: 1, rows: cmp.Or(o.Groups, 512) + 1}
	if err := p.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("requests: %w", err), p.Close())
	}
	return p, nil
}

func (p *Probe) open(o Options) error {
	types := btf.NewCache()
	kernel := o.kernel
	if kernel == nil {
		var err error
		if kernel, err = types.Kernel(); err != nil {
			return fmt.Errorf("read the kernel's types: %w", err)
		}
	}
	if err := tracepoints(kernel); err != nil {
		return err
	}
	spec, err := loadKernel()
	if err != nil {
		return err
	}
	for _, name := range []string{kernelMapSlots, kernelMapGroups, kernelMapClocks} {
		spec.Maps[name].MaxEntries = uint32(p.rows)
	}
	how := programs.Options{Stats: o.Stats, Types: types, Kernel: o.kernel}
	p.programs, err = programs.Load(subset(spec, kernelProgSkDataReady, kernelProgSockSendLength, kernelProgInetSockSetState, kernelProgAdopt), &p.objects, how)
	if err != nil {
		return err
	}
	clock := []string{kernelProgSchedSwitch}
	if !programs.Has(types, "task_struct", "throttled") { // from 6.18 on a switch shows each throttle
		clock = append(clock, kernelProgSchedWakeup)
	}
	p.clock = p.programs.Add(subset(spec, clock...), how)
	if p.counts, err = p.objects.Groups.Memory(); err != nil {
		return fmt.Errorf("map the counts: %w", err)
	}
	return nil
}

// tracepoints says which one the programs need and the kernel lacks.
func tracepoints(kernel *btf.Spec) error {
	for _, name := range []string{"sk_data_ready", "sock_send_length", "inet_sock_set_state"} {
		var t *btf.Typedef
		if err := kernel.TypeByName("btf_trace_"+name, &t); err != nil {
			return fmt.Errorf("%w: %s", ErrTracepoint, name)
		}
	}
	return nil
}

// subset is a collection with some of its programs.
func subset(spec *ebpf.CollectionSpec, names ...string) *ebpf.CollectionSpec {
	some := spec.Copy()
	some.Programs = map[string]*ebpf.ProgramSpec{}
	for _, name := range names {
		some.Programs[name] = spec.Programs[name].Copy()
	}
	return some
}

// Start attaches the programs. Sockets that are older are not followed: see Adopt.
func (p *Probe) Start() error {
	if err := p.programs.Attach(kernelProgAdopt); err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	return nil
}

// Clockless says why the throttled part of requests is not known; nil: it is.
func (p *Probe) Clockless() error { return p.clock }

// Set follows a group, by the inode of its directory in the cpu hierarchy (v1) or on v2. Groups inside of it that are not
// set count for it.
func (p *Probe) Set(inode uint64) error {
	if _, there := p.slots[inode]; there {
		return nil
	}
	slot := p.next
	switch {
	case int(slot) < p.rows:
		p.next++
	case len(p.free) > 0:
		slot, p.free = p.free[0], p.free[1:]
	default:
		return fmt.Errorf("requests: group %d: the table is full with %d groups", inode, p.rows-1)
	}
	if err := p.objects.Slots.Put(inode, slot); err != nil {
		return fmt.Errorf("requests: follow group %d: %w", inode, err)
	}
	p.slots[inode] = slot
	return p.announce()
}

// announce makes the programs look up the groups of connections again.
func (p *Probe) announce() error {
	p.revision++
	if err := p.objects.Generation.Set(p.revision); err != nil {
		return fmt.Errorf("requests: announce the groups: %w", err)
	}
	return nil
}

// Forget gives up a group that is gone. Its clock, should it still run, is stopped by the next group that has its slot:
// only differences of a clock are used.
func (p *Probe) Forget(inode uint64) error {
	slot, there := p.slots[inode]
	if !there {
		return nil
	}
	if err := p.objects.Slots.Delete(inode); err != nil {
		return fmt.Errorf("requests: forget group %d: %w", inode, err)
	}
	delete(p.slots, inode)
	p.free = append(p.free, slot)
	return p.announce()
}

// Read is what was counted of a group, and of those that had its slot before: only the difference of two readings means
// something.
func (p *Probe) Read(inode uint64) (responsetime.Counts, error) {
	slot, there := p.slots[inode]
	if !there {
		return responsetime.Counts{}, fmt.Errorf("requests: group %d is not followed", inode)
	}
	var k kernelCounts
	size := unsafe.Sizeof(k)
	if _, err := p.counts.ReadAt(unsafe.Slice((*byte)(unsafe.Pointer(&k)), size), int64(slot)*int64(size)); err != nil {
		return responsetime.Counts{}, fmt.Errorf("requests: read group %d: %w", inode, err)
	}
	c := responsetime.Counts{Doubtful: k.Doubtful, Opening: k.Opening, Overtaken: k.Overtaken, Clockless: k.Clockless,
		Total: time.Duration(k.Response), ClocklessTime: time.Duration(k.ClocklessTime), Kept: time.Duration(k.Throttled)}
	for i, h := range []*responsetime.Histogram{&c.Response, &c.FirstByte, &c.Upload, &c.Throttled} { // enum kind
		*h = k.Times[i]
	}
	return c, nil
}

// Adopted is how many connections were taken over, and Unseen how many the kernel had no memory to follow.
func (p *Probe) Adopted() int64 { return count(p.objects.Adopted) }

// Unseen is how many connections are not followed, because the kernel had no memory for it.
func (p *Probe) Unseen() int64 { return count(p.objects.Unseen) }

func count(v *ebpf.Variable) int64 {
	var n uint64
	if err := v.Get(&n); err != nil {
		return 0 // mapped memory, from 5.5 on
	}
	return int64(n)
}

// Close removes the programs from the kernel.
func (p *Probe) Close() error { return errors.Join(p.programs.Close(), p.objects.Close()) }

// Cost is what each program has cost since Open. It needs Options.Stats.
func (p *Probe) Cost() ([]programs.Cost, error) { return p.programs.Cost() }
