package runq

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/programs"
)

// Options of a probe; the zero value is a good one.
type Options struct {
	Groups   int         // how many can have a number; 0: 4096
	Tasks    int         // threads of the machine at one time; 0: see tasks
	Siblings map[int]int // the other hardware thread of a CPU's core; CPUs without one are left out
	Stats    bool        // the kernel measures what the programs cost: see Cost
	Nameless bool        // waits are not counted by neighbour: there are no Pairs, and the programs cost less

	change   func(*ebpf.CollectionSpec) // tests break the programs with it
	rowCells int                        // and have few cells for a CPU
	pairs    int                        // and little room for pairs
}

// Slot is the number of a group. Numbers below First are for threads of groups that were not set.
type Slot uint32

// The slots that are there from the beginning.
const (
	Others Slot = 0 // threads outside of all groups that were set
	Kernel Slot = 1 // kernel threads
	idle   Slot = 2
	First  Slot = 3
)

const (
	defaultGroups = 4096
	fewestTasks   = 32768
	mostTasks     = 131072
	maxCPUs       = 1024 // WORDS in bpf/runq.bpf.c
)

// Probe is a set of programs in the kernel. They are gone with the process that opened it.
type Probe struct {
	objects  objects
	programs *programs.Set
	cells    *ebpf.Memory
	shared   *ebpf.Memory
	rowCells int // cells of a CPU
	sides    *ebpf.Memory
	cpus     int
	siblings [maxCPUs]uint32 // one more than the number of the other thread of a CPU's core; 0: there is none
	rows     int
	slots    map[uint64]Slot // by inode
	next     Slot            // that no group has had yet
	free     []Slot          // of groups that were forgotten, in that order
	clean    int             // of free, the first ones: their pairs are deleted; see sweep
	unswept  int             // forgotten since the last sweep
	deleted  int64           // pairs
	revision uint32

	irq, steal bool // see Separates
}

type objects struct {
	kernelMaps
	kernelVariables
}

// Open loads the programs. probe.Explain says what can be done about its error.
func Open(o Options) (*Probe, error) {
	p := &Probe{slots: map[uint64]Slot{}, next: First, revision: 1}
	if err := p.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("runq: %w", err), p.Close())
	}
	return p, nil
}

func (p *Probe) open(o Options) error {
	spec, err := loadKernel()
	if err != nil {
		return err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	if err := p.fit(spec, o, cpus); err != nil {
		return err
	}
	types := btf.NewCache()
	p.irq, p.steal = programs.Has(types, "rq", "prev_irq_time"), programs.Has(types, "rq", "prev_steal_time")
	if p.programs, err = programs.Load(spec, &p.objects, programs.Options{Stats: o.Stats, Types: types}); err != nil {
		return err
	}
	if p.cells, err = p.objects.Cells.Memory(); err != nil {
		return fmt.Errorf("map the sums: %w", err)
	}
	if p.shared, err = p.objects.Shared.Memory(); err != nil {
		return fmt.Errorf("map the shared sums: %w", err)
	}
	if p.sides, err = p.objects.Sides.Memory(); err != nil {
		return fmt.Errorf("map the turns of cores: %w", err)
	}
	return nil
}

// fit makes the tables as large as a machine of so many CPUs needs them.
func (p *Probe) fit(spec *ebpf.CollectionSpec, o Options, cpus int) error {
	if p.cpus = cpus; cpus > maxCPUs {
		return fmt.Errorf("%d CPUs: at most %d are supported", p.cpus, maxCPUs)
	}
	p.rows = int(First) + cmp.Or(o.Groups, defaultGroups)
	spec.Maps[kernelMapTasks].MaxEntries = uint32(cmp.Or(o.Tasks, tasks(threads())))
	for _, name := range []string{kernelMapCpus, kernelMapBills, kernelMapSides} {
		spec.Maps[name].MaxEntries = uint32(p.cpus)
	}
	if o.pairs > 0 {
		spec.Maps[kernelMapPairs].MaxEntries = uint32(o.pairs)
	}
	p.rowCells = cmp.Or(o.rowCells, rowCells(p.rows, p.cpus))
	spec.Maps[kernelMapCells].MaxEntries = uint32(p.rowCells * p.cpus)
	for _, name := range []string{kernelMapSlots, kernelMapGroups, kernelMapSpreads, kernelMapShared} {
		spec.Maps[name].MaxEntries = uint32(p.rows)
	}
	for cpu, other := range o.Siblings {
		if cpu >= 0 && cpu < p.cpus && other >= 0 && other < p.cpus {
			p.siblings[cpu] = uint32(other + 1)
		}
	}
	named := uint32(1)
	if o.Nameless {
		named = 0
	}
	for name, value := range map[string]any{
		kernelVarNamed:    named,
		kernelVarRowCells: uint32(p.rowCells),
		kernelVarPossible: uint32(p.cpus),
		kernelVarWords:    uint32((p.cpus + 63) / 64),
		kernelVarSiblings: p.siblings,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	if o.change != nil {
		o.change(spec)
	}
	return nil
}

// rowCells is how many cells a CPU has: one for each group, where that is not more than 8 MiB for all CPUs. Groups
// share cells otherwise.
func rowCells(rows, cpus int) int {
	const most = 8 << 20
	return min(rows, max(int(First)+1, most/(cpus*int(unsafe.Sizeof(kernelCell{})))))
}

// tasks is how many threads the table has room for, where so many are there at the start. A tenant may make any number:
// hence the most, 17 MiB.
func tasks(threads int) int { return min(max(fewestTasks, 4*threads), mostTasks) }

// threads are those of the machine now: /proc/loadavg ends with "running/all last".
func threads() int {
	var a, b, c string
	var running, all int
	data, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscanf(string(data), "%s %s %s %d/%d", &a, &b, &c, &running, &all)
	}
	if err != nil {
		return 0
	}
	return all
}

// Start attaches the programs and counts the threads that are there, for the groups that have been set. A thread of a
// group that is set later counts for it from its next switch on.
func (p *Probe) Start() error {
	if err := p.attach(); err != nil {
		return fmt.Errorf("runq: %w", err)
	}
	return nil
}

func (p *Probe) attach() error {
	if err := p.programs.Attach(kernelProgPrime, kernelProgFirstTurn); err != nil {
		return err
	}
	if err := p.prime(); err != nil {
		return err
	}
	for cpu := range p.cpus {
		if err := p.firstTurn(cpu); err != nil {
			return err
		}
	}
	return nil
}

// prime counts the threads that run or wait.
func (p *Probe) prime() error {
	l, err := link.AttachIter(link.IterOptions{Program: p.programs.Get(kernelProgPrime)})
	if err != nil {
		return fmt.Errorf("attach %s: %w", kernelProgPrime, err)
	}
	defer l.Close()
	tasks, err := l.Open()
	if err != nil {
		return fmt.Errorf("open the list of tasks: %w", err)
	}
	defer tasks.Close()
	if _, err := io.Copy(io.Discard, tasks); err != nil {
		return fmt.Errorf("walk the tasks: %w", err)
	}
	return nil
}

// firstTurn begins the turn of a CPU that has not switched since.
// A CPU that is offline will switch when it comes online.
func (p *Probe) firstTurn(cpu int) error {
	_, err := p.programs.Get(kernelProgFirstTurn).Run(&ebpf.RunOptions{Flags: unix.BPF_F_TEST_RUN_ON_CPU,
		CPU: uint32(cpu)})
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("begin the first turn of CPU %d: %w", cpu, err)
	}
	return nil
}

// Close removes the programs from the kernel.
func (p *Probe) Close() error { return errors.Join(p.programs.Close(), p.objects.Close()) }

// Switch is the program that runs at each context switch.
const Switch = kernelProgSchedSwitch

// Separates says whether this kernel subtracts interrupts, and the steal of a hypervisor, from the time of threads.
func (p *Probe) Separates() (irq, steal bool) { return p.irq, p.steal }

// Cost is what each program has cost since Open. It needs Options.Stats.
func (p *Probe) Cost() ([]programs.Cost, error) { return p.programs.Cost() }
