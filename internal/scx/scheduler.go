package scx

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/cpu"
	"plimsoll/internal/probe"
)

// Options of the scheduler; the zero value is a good one.
type Options struct {
	Floor    float64       // the part of a CPU that offline tasks get where online ones fill it; 0: 0.003, at most 0.5
	Watchdog time.Duration // the kernel ends the scheduler when a task waits so long; 0: 20 s, at most 30 s
	Expel    bool          // groups may expel (Setting)
	Groups   int           // size of the map of control groups; 0: 16,384. With one group more the scheduler ends
}

const (
	floorSlice      = 3 * time.Millisecond // at a time
	defaultFloor    = 0.003                // a slice in a second
	leastFloor      = 0.0005
	mostFloor       = 0.5
	defaultWatchdog = 20 * time.Second
	maxWatchdog     = 30 * time.Second // SCX_WATCHDOG_MAX_TIMEOUT
	maxCPUs         = 1024             // CPUS in bpf/cpu.h
)

// Class is how a group's tasks are treated.
type Class uint32

// The classes.
const (
	Inherited Class = iota // as the group above; online where none says otherwise
	Online
	Offline
)

// Scheduler is Plimsoll's own, in force.
type Scheduler struct {
	*Attachment
	LearnsLimits bool // the kernel reports changed quotas and bursts (6.17)
	parts        objects
	records      *probe.Ring
}

type objects struct {
	kernelMaps
	kernelVariables
	Apply *ebpf.Program `ebpf:"apply"`
}

// Own is Plimsoll's scheduler, for this machine.
func Own(o Options) (*Object, error) {
	spec, err := loadKernel()
	if err != nil {
		return nil, err
	}
	if err := o.constants(spec); err != nil {
		return nil, err
	}
	if o.Groups > 0 {
		spec.Maps[kernelMapGroups].MaxEntries = uint32(o.Groups)
	}
	if types, err := btf.LoadKernelSpec(); err == nil { // or the preflight says so
		fit(spec, types)
	}
	object, err := newObject(spec)
	if err != nil {
		return nil, err
	}
	return object, object.setWatchdog(o.Watchdog)
}

// fit removes the callback for new limits, which kernels before 6.17 (ddceadce63d9) lack.
// There limits come through Set.
func fit(spec *ebpf.CollectionSpec, types *btf.Spec) {
	if !knowsOperations(types, []string{kernelProgCgroupSetBandwidth}).OK {
		delete(spec.Programs, kernelProgCgroupSetBandwidth)
	}
}

// complete puts the defaults in, and refuses what cannot be.
func (o *Options) complete() error {
	o.Floor, o.Watchdog = cmp.Or(o.Floor, defaultFloor), cmp.Or(o.Watchdog, defaultWatchdog)
	if o.Floor < leastFloor || o.Floor > mostFloor {
		return fmt.Errorf("the floor is from %v to %v of a CPU, not %v", leastFloor, mostFloor, o.Floor)
	}
	if o.Watchdog < time.Second || o.Watchdog > maxWatchdog {
		return fmt.Errorf("the kernel's watchdog waits from 1 s to %v, not %v", maxWatchdog, o.Watchdog)
	}
	return nil
}

// constants sets the numbers that the verifier treats as constants.
func (o *Options) constants(spec *ebpf.CollectionSpec) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	if cpus > maxCPUs {
		return fmt.Errorf("the scheduler knows %d CPUs, and there may be %d here", maxCPUs, cpus)
	}
	if err := o.complete(); err != nil {
		return err
	}
	cores, err := siblings("/sys")
	if err != nil {
		return err
	}
	tick, err := probe.Tick()
	if err != nil {
		return err
	}
	expel := uint32(0)
	if o.Expel && len(cores) > 0 {
		expel = 1
	}
	var next [maxCPUs]uint16
	for cpu := range next {
		next[cpu] = uint16(cpu)
		if other, ok := cores[cpu]; ok && other < maxCPUs && cpu < cpus {
			next[cpu] = uint16(other)
		}
	}
	for name, value := range map[string]any{
		kernelVarCpus:       uint32(cpus),
		kernelVarExpel:      expel,
		kernelVarSibling:    next,
		kernelVarFloorSlice: uint64(floorSlice),
		kernelVarFloorRest:  uint64(64 * (1/o.Floor - 1)),
		kernelVarTimeoutNs:  uint64(o.Watchdog),
		kernelVarTickNs:     uint64(tick),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// Usable says what keeps the scheduler from being put in force here, be it for the moment or for good, without loading
// anything. It costs next to nothing on kernels without sched_ext.
func Usable() error {
	m := thisMachine()
	if _, err := readState(m.sys); errors.Is(err, ErrNotThere) {
		return Obstacle{[]Finding{{"sched_ext", false, m.lacking()}}}
	}
	object, err := Own(Options{})
	if err != nil {
		return err
	}
	if found := (Obstacle{Preflight(object)}); found.Any() {
		return found
	}
	if object.spec.Programs[kernelProgCgroupSetBandwidth] == nil {
		return errors.New("the kernel does not report changed limits to a scheduler (mainline does since 6.17): " +
			"they would have no effect")
	}
	return nil
}

// Open puts the scheduler in force, if the preflight finds nothing in its way.
func Open(o Options) (*Scheduler, error) {
	object, err := Own(o)
	if err != nil {
		return nil, err
	}
	loaded, err := object.Ready()
	if err != nil {
		return nil, err
	}
	s := &Scheduler{LearnsLimits: loaded.parts.Programs[kernelProgCgroupSetBandwidth] != nil}
	if err := loaded.parts.Assign(&s.parts); err != nil {
		loaded.Close()
		return nil, fmt.Errorf("load the scheduler: %w", err)
	}
	if s.records, err = probe.OpenRing(s.parts.Events); err == nil {
		s.Attachment, err = loaded.Attach()
	}
	if err != nil {
		if exit, e := s.Exit(); e == nil && exit.Message != "" {
			err = fmt.Errorf("%w: %s", err, exit.Message)
		}
		loaded.Close()
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Scheduler) close() error {
	var ring error
	if s.records != nil {
		ring = s.records.Close()
	}
	return errors.Join(ring, s.parts.kernelMaps.Close(), s.parts.Apply.Close())
}

// Close removes the scheduler from the kernel.
func (s *Scheduler) Close() (Stall, error) {
	p, err := s.Attachment.Close()
	return p, errors.Join(err, s.close())
}

// Setting is what user space says of a group.
type Setting struct {
	Class  Class
	Expels bool           // with class Online: no offline task beside one of the group's on the same core
	Limit  *cpu.Bandwidth // in force instead of what the kernel's files say; nil: they count
}

// ErrNoGroup is a group that the kernel's cpu controller does not have, or not any more.
var ErrNoGroup = errors.New("the scheduler knows no such group")

// Set sets the class and limit of a group, by the inode of its directory.
func (s *Scheduler) Set(group uint64, to Setting) error {
	value := kernelSetting{Class: uint32(to.Class)}
	if to.Expels {
		value.Expels = 1
	}
	if to.Limit != nil {
		value.Limited = 1
		if to.Limit.Limited() {
			value.Limit.Quota, value.Limit.Period, value.Limit.Burst = uint64(to.Limit.Quota), uint64(
				to.Limit.Period), uint64(to.Limit.Burst)
		}
	}
	if err := s.parts.Settings.Put(group, value); err != nil {
		return fmt.Errorf("scheduler: set group %d: %w", group, err)
	}
	err := s.apply(group)
	if errors.Is(err, ErrNoGroup) { // nobody will ask to forget it
		err = errors.Join(err, s.parts.Settings.Delete(group))
	}
	return err
}

// Forget makes a group what the groups above and the kernel's files say.
func (s *Scheduler) Forget(group uint64) error {
	if err := s.parts.Settings.Delete(group); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("scheduler: forget group %d: %w", group, err)
	}
	if err := s.apply(group); !errors.Is(err, ErrNoGroup) {
		return err
	}
	return nil
}

func (s *Scheduler) apply(group uint64) error {
	result, err := s.parts.Apply.Run(&ebpf.RunOptions{Context: struct{ ID uint64 }{group}})
	if err != nil {
		return fmt.Errorf("scheduler: apply the settings of group %d: %w", group, err)
	}
	if result != 0 {
		return fmt.Errorf("scheduler: group %d: %w", group, ErrNoGroup)
	}
	return nil
}
