package probe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/probe/programs"
)

// Missing is a requested part of a probe that the kernel refused.
type Missing struct {
	Part string // which, for metrics
	Lost string // what is not reported
	Err  error
}

// The parts of a probe. Each is loaded by itself, so that a kernel that lacks what one of them reads loses that one
// only. Throttles that begin and end are no part: without them there is no probe.
const (
	PartBalance  = "balance"  // a group's use, and the runtime of its CPUs, in each event
	PartWakeups  = "wakeups"  // below 6.18: throttles of tasks that wake or are moved
	PartPeriods  = "periods"  // Options.Use
	PartForecast = "forecast" // Options.Ahead
)

// MostCPUs bounds the CPUs of a group that one walk visits (MOST in bpf/queue.h), on any machine.
const MostCPUs = 64

// Parts lists them all.
func Parts() []string { return []string{PartBalance, PartWakeups, PartPeriods, PartForecast} }

// lost says what is not reported where a part is missing.
func lost(part string) string {
	switch part {
	case PartBalance:
		return "events have no use of a group, and no runtime of its CPUs"
	case PartWakeups:
		return "throttles that begin as a task wakes are reported late"
	case PartPeriods:
		return "the use of periods is not counted"
	}
	return "throttles are not foreseen"
}

// Missing lists the requested parts that the kernel refused.
func (p *Probe) Missing() []Missing {
	if p == nil {
		return nil
	}
	return slices.Clone(p.missing)
}

// lacks lists a part once, with the first refusal: several programs may belong to it, and metrics go by its name.
func (p *Probe) lacks(part string, err error) {
	if slices.ContainsFunc(p.missing, func(m Missing) bool { return m.Part == part }) {
		return
	}
	p.missing = append(p.missing, Missing{Part: part, Lost: lost(part), Err: err})
}

// wakeups are the programs of PartWakeups.
func wakeups() []string {
	return []string{kernelProgSchedWakeup, kernelProgSchedWakeupNew, kernelProgSchedMigrateTask}
}

// load loads the program that reports throttles, and then each other requested part.
func (p *Probe) load(spec *ebpf.CollectionSpec, o Options) error {
	how := o.how()
	if !o.Use {
		unbalanced(spec)
	}
	var err error
	p.programs, err = programs.Load(subset(spec, kernelProgSchedSwitch), &p.objects, how)
	if err != nil && o.Use && !errors.Is(err, programs.ErrUncounted) {
		refused := err
		unbalanced(spec)
		if p.programs, err = programs.Load(subset(spec, kernelProgSchedSwitch), &p.objects, how); err != nil {
			return refused
		}
		p.lacks(PartBalance, refused)
	} else if err != nil {
		return err
	}
	if !oneByOne(o.types) {
		for _, name := range wakeups() {
			if err := p.add(spec, name, how); err != nil {
				p.lacks(PartWakeups, err)
			}
		}
	}
	p.loadAccounts(spec, o)
	return nil
}

// loadAccounts loads the programs that follow the use of groups. The program that foresees throttles also marks the
// CPUs on which a group runs; where it is not requested, or refused, another program does only that.
func (p *Probe) loadAccounts(spec *ebpf.CollectionSpec, o Options) {
	var err error
	how := o.how()
	if o.Ahead {
		if err = p.add(spec, kernelProgSchedStatRuntime, how); err != nil {
			p.lacks(PartForecast, err)
		}
	}
	if !o.Use {
		return
	}
	if !o.Ahead || err != nil {
		err = p.add(spec, kernelProgSchedStatRuntimeActive, how)
	}
	if err == nil {
		err = p.add(spec, kernelProgHrtimerExpireEntry, how)
	}
	if err != nil {
		p.lacks(PartPeriods, err)
	}
}

// attach attaches the loaded programs, each part by itself, as they were loaded. Without the program that marks CPUs a
// period would seem to have no use, so it is not counted then.
func (p *Probe) attach(one func(name string) error, use bool) error {
	if err := one(kernelProgSchedSwitch); err != nil {
		return err
	}
	for _, name := range wakeups() {
		if err := one(name); err != nil {
			p.lacks(PartWakeups, err)
		}
	}
	err := one(kernelProgSchedStatRuntime)
	if err != nil {
		p.lacks(PartForecast, err)
	}
	if !use {
		return nil
	}
	if err == nil {
		err = one(kernelProgSchedStatRuntimeActive)
	}
	if err == nil {
		err = one(kernelProgHrtimerExpireEntry)
	}
	if err != nil {
		p.lacks(PartPeriods, err)
	}
	return nil
}

func (o Options) how() programs.Options {
	return programs.Options{Stats: o.Stats, Types: o.types, Kernel: o.kernel}
}

func (p *Probe) add(spec *ebpf.CollectionSpec, name string, how programs.Options) error {
	if spec.Programs[name] == nil {
		return nil // a test does without it
	}
	return p.programs.Add(subset(spec, name), how)
}

// subset is a collection with one of its programs.
func subset(spec *ebpf.CollectionSpec, name string) *ebpf.CollectionSpec {
	one := spec.Copy()
	one.Programs = map[string]*ebpf.ProgramSpec{}
	if program := spec.Programs[name]; program != nil {
		one.Programs[name] = program.Copy()
	}
	return one
}

// unbalanced has the function balance do nothing. What only that one calls goes with it, for a verifier before 6.8
// checks each function that is there (2afae08c9dcb).
func unbalanced(spec *ebpf.CollectionSpec) {
	for _, name := range []string{kernelProgSchedSwitch, kernelProgSchedWakeup, kernelProgSchedWakeupNew,
		kernelProgSchedMigrateTask, kernelProgSchedStatRuntime} {
		if program := spec.Programs[name]; program != nil {
			program.Instructions = stubbed(program.Instructions, "balance")
		}
	}
}

// stubbed is a program whose function of that name returns 0, without functions that nothing calls any more.
func stubbed(list asm.Instructions, name string) asm.Instructions {
	functions := map[string]asm.Instructions{}
	var order []string
	for i, from := 1, 0; i <= len(list); i++ {
		if i == len(list) || btf.FuncMetadata(&list[i]) != nil {
			order = append(order, list[from].Symbol())
			functions[list[from].Symbol()], from = list[from:i], i
		}
	}
	if old := functions[name]; old != nil {
		begin := asm.Mov.Imm(asm.R0, 0)
		begin.Metadata = old[0].Metadata
		functions[name] = asm.Instructions{begin, asm.Return()}
	}
	called := map[string]bool{}
	var call func(name string)
	call = func(name string) {
		if called[name] {
			return
		}
		called[name] = true
		for _, ins := range functions[name] {
			if ins.IsFunctionReference() {
				call(ins.Reference())
			}
		}
	}
	call(order[0])
	var kept asm.Instructions
	for _, name := range order {
		if called[name] {
			kept = append(kept, functions[name]...)
		}
	}
	return kept
}

// oneByOne says whether this kernel throttles tasks one by one, on their way to user space (6.18): a switch shows
// each, and no program is needed for tasks that wake or are moved.
func oneByOne(types *btf.Cache) bool { return programs.Has(types, "task_struct", "throttled") }

// ErrRealtime is an error of Open: see preemptible.
var ErrRealtime = errors.New("this kernel is built with PREEMPT_RT, and its ring buffer takes a lock that may sleep")

// preemptible refuses kernels on which an event must not be sent from the scheduler: with PREEMPT_RT a spinlock_t is
// a lock that sleeps, and the ring buffer has one of that kind before 6.12 (8b62645b09f8; kernel/bpf/ringbuf.c,
// struct bpf_ringbuf).
func (o Options) preemptible() error {
	kernel := o.kernel
	if kernel == nil {
		var err error
		if kernel, err = o.types.Kernel(); err != nil {
			return nil //nolint:nilerr // the load fails as well, and says so
		}
	}
	var ring, lock *btf.Struct
	if kernel.TypeByName("bpf_ringbuf", &ring) != nil || kernel.TypeByName("spinlock", &lock) != nil {
		return nil
	}
	sleeps := slices.ContainsFunc(lock.Members, func(m btf.Member) bool {
		return m.Type.TypeName() == "rt_mutex_base" || m.Type.TypeName() == "rt_mutex" // before 5.15
	})
	plain := slices.ContainsFunc(ring.Members, func(m btf.Member) bool {
		return m.Name == "spinlock" && m.Type.TypeName() == "spinlock_t"
	})
	if sleeps && plain {
		return fmt.Errorf("%w", ErrRealtime)
	}
	return nil
}
