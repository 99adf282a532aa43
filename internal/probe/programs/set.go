// Package programs puts a set of eBPF programs into the kernel, and takes it out again. What they do is the business of the
// packages that bring them.
package programs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Set is programs that are loaded. They are gone with the process that loaded them.
type Set struct {
	loaded *ebpf.Collection
	links  []link.Link
	stats  io.Closer
}

// ErrUncounted is an error of Load: the kernel does not measure what programs cost (kernel/bpf/syscall.c, bpf_enable_stats:
// CAP_SYS_ADMIN, which no other part of it needs).
var ErrUncounted = errors.New("statistics of eBPF programs are refused")

// Program is one of a set, and its name.
type Program struct {
	Name string
	*ebpf.Program
}

// Load loads the programs, and hands their maps and variables to the fields of parts (ebpf.Collection.Assign), which has to
// close them. With stats the kernel measures what programs cost, all those of the machine: see Cost.
func Load(spec *ebpf.CollectionSpec, parts any, stats bool) (*Set, error) {
	// From 5.11 on memory is charged to the control group. Below, a refusal shows in the error of the load.
	limit := rlimit.RemoveMemlock()
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load programs: %w", err), limit)
	}
	s := &Set{loaded: loaded}
	if err = loaded.Assign(parts); err == nil && stats {
		if s.stats, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
			err = fmt.Errorf("%w: %w", ErrUncounted, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// All lists the programs, in the order in which they are attached.
func (s *Set) All() []Program {
	var list []Program
	for _, name := range slices.Sorted(maps.Keys(s.loaded.Programs)) {
		list = append(list, Program{name, s.loaded.Programs[name]})
	}
	return list
}

// Get is the program of a name.
func (s *Set) Get(name string) *ebpf.Program { return s.loaded.Programs[name] }

// Attach attaches all programs to what their sections name, but those that are run in another way.
func (s *Set) Attach(but ...string) error {
	for _, program := range s.All() {
		if slices.Contains(but, program.Name) {
			continue
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: program.Program})
		if err != nil {
			return fmt.Errorf("attach %s: %w", program.Name, err)
		}
		s.links = append(s.links, l)
	}
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

// Close takes the programs out of the kernel.
func (s *Set) Close() error {
	if s == nil {
		return nil
	}
	err := s.Detach()
	if s.stats != nil {
		err = errors.Join(err, s.stats.Close())
	}
	s.loaded.Close()
	return err
}

// Cost is what one program has cost since it was loaded.
type Cost struct {
	Program string
	Runs    int64
	Total   time.Duration // the measurement included
}

// Cost needs stats.
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
