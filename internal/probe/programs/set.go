// Package programs loads a set of eBPF programs into the kernel, and removes it again. What they do is the business
// of the packages that bring them.
package programs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Set is programs that are loaded. They are gone with the process that loaded them.
type Set struct {
	loaded []*ebpf.Collection
	maps   map[string]*ebpf.Map // maps of the first program, which the others share; the owner of the parts closes them
	links  []link.Link
	stats  io.Closer
}

// Options of a load; the zero value is a good one.
type Options struct {
	Stats bool // the kernel measures what programs cost, all those of the machine: see Cost
	// the running kernel's type information, shared by several loads; reading it takes longer than the rest of a load
	Types  *btf.Cache
	Kernel *btf.Spec // another kernel's, instead of it

	Maps map[string]*ebpf.Map // of programs that are loaded already, instead of maps of these names
}

func (o Options) collection(maps map[string]*ebpf.Map) ebpf.CollectionOptions {
	return ebpf.CollectionOptions{MapReplacements: maps, Programs: ebpf.ProgramOptions{KernelTypes: o.Kernel},
		Cache: o.Types}
}

// ErrUncounted is an error of Load: the kernel does not measure what programs cost (kernel/bpf/syscall.c,
// bpf_enable_stats: CAP_SYS_ADMIN, which no other part of it needs).
var ErrUncounted = errors.New("statistics of eBPF programs are refused")

// ErrMemlock is an error of Load: the limit of locked memory could not be raised. It matters where the kernel counts
// the memory of programs against it (below 5.11).
var ErrMemlock = errors.New("RLIMIT_MEMLOCK could not be raised")

// Program is one of a set, and its name.
type Program struct {
	Name string
	*ebpf.Program
}

// Load loads the programs, and assigns their maps and variables to the fields of parts (ebpf.Collection.Assign), which
// has to close them.
func Load(spec *ebpf.CollectionSpec, parts any, o Options) (*Set, error) {
	// From 5.11 on memory is charged to the control group. Below, a refusal shows in the error of the load.
	limit := rlimit.RemoveMemlock()
	s := &Set{}
	loaded, err := ebpf.NewCollectionWithOptions(spec, o.collection(o.Maps))
	if err != nil {
		err = fmt.Errorf("load programs: %w", err)
		if limit != nil {
			err = fmt.Errorf("%w; %w: %w", err, ErrMemlock, limit)
		}
		return nil, err
	}
	s.loaded, s.maps = append(s.loaded, loaded), maps.Clone(loaded.Maps) // Assign removes those that it assigns
	if err = loaded.Assign(parts); err == nil && o.Stats {
		if s.stats, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
			err = fmt.Errorf("%w: %w", ErrUncounted, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Add loads more programs, which share the maps of those that are there. A refusal leaves the set as it is.
func (s *Set) Add(spec *ebpf.CollectionSpec, o Options) error {
	more, err := ebpf.NewCollectionWithOptions(spec, o.collection(s.maps))
	if err != nil {
		return fmt.Errorf("load programs: %w", err)
	}
	s.loaded = append(s.loaded, more)
	return nil
}

// All lists the programs by name: they are attached in this order.
func (s *Set) All() []Program {
	var list []Program
	for _, c := range s.loaded {
		for name, program := range c.Programs {
			list = append(list, Program{name, program})
		}
	}
	slices.SortFunc(list, func(a, b Program) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Get is the program of a name; nil if there is none.
func (s *Set) Get(name string) *ebpf.Program {
	for _, c := range s.loaded {
		if program := c.Programs[name]; program != nil {
			return program
		}
	}
	return nil
}

// Attach attaches all programs to what their sections name, but those that are run in another way.
func (s *Set) Attach(but ...string) error {
	for _, program := range s.All() {
		if slices.Contains(but, program.Name) {
			continue
		}
		if err := s.AttachOne(program.Name); err != nil {
			return err
		}
	}
	return nil
}

// AttachOne attaches the program of a name; nothing happens where it is not loaded.
func (s *Set) AttachOne(name string) error {
	program := s.Get(name)
	if program == nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	s.links = append(s.links, l)
	return nil
}

// Detach leaves the programs loaded.
func (s *Set) Detach() error {
	var list []error
	for _, l := range s.links {
		list = append(list, l.Close())
	}
	s.links = nil
	return errors.Join(list...)
}

// Close removes the programs from the kernel.
func (s *Set) Close() error {
	if s == nil {
		return nil
	}
	err := s.Detach()
	if s.stats != nil {
		err = errors.Join(err, s.stats.Close())
	}
	for _, c := range s.loaded {
		c.Close()
	}
	return err
}

// Cost is what one program has cost since it was loaded.
type Cost struct {
	Program string
	Runs    int64
	Total   time.Duration // the measurement included
}

// Cost needs Options.Stats.
func (s *Set) Cost() ([]Cost, error) {
	var list []Cost
	for _, program := range s.All() {
		stats, err := program.Stats()
		if err != nil {
			return nil, fmt.Errorf("cost of %s: %w", program.Name, err)
		}
		list = append(list, Cost{Program: program.Name, Runs: int64(stats.RunCount), Total: stats.Runtime})
	}
	return list, nil
}

// Has says whether a struct of the running kernel has a field. Without type information there is none, and no program
// either.
func Has(types *btf.Cache, name, field string) bool {
	var s *btf.Struct
	kernel, err := types.Kernel()
	return err == nil && kernel.TypeByName(name, &s) == nil && member(s, field)
}

func member(s *btf.Struct, field string) bool {
	for _, m := range s.Members {
		if m.Name == field {
			return true
		}
		if inner, ok := m.Type.(*btf.Struct); ok && m.Name == "" && member(inner, field) {
			return true
		}
	}
	return false
}
