// Command reservation shows where a container does not get the CPU that it has reserved, and why: the experiments of
// Mind the Gap (SoCC '21), scaled to this machine.
//
// Approach: the target has reserved one CPU, its neighbour all others, and their weights are as much, so on paper
// nobody takes anything from anybody. The target is a batch job of one thread, which shows in how long it takes and how
// much of its CPU it receives, and then memcached under an open-loop load, which shows in its response time. The
// neighbour is stress-ng, with a limit of what it has reserved (capped) or without one (burstable). With -table every
// thread has its place, one of the neighbour's beside the target's: what sharing a run queue costs, beside what the
// kernel's weights and limits make of it. With -three that is the published table of three CPUs, in a virtual machine.
//
// Other programs of the machine are not the subject: their CPU time is listed separately. With the target's CPU for
// itself the agent keeps them off that CPU too (reserve.shield, on cgroup v1), and puts them back.
//
// Known limits: the load generator runs on the same machine, before all ordinary tasks, and with the agent on its first
// CPU; what they use nobody else has. On two CPUs the scheduler can keep a target of one thread by itself, and often
// does.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"plimsoll/lab/frame"
)

// settings say what is measured.
type settings struct {
	frame.Settings
	slot       time.Duration // of a measurement
	repeat     int           // rounds
	rate       float64       // requests a second at which the response time is taken
	highest    float64       // requests a second that the search goes up to
	bound      time.Duration // on the p99 at the highest throughput
	search     bool
	split      bool // let `plimsoll diagnose` measure where the time went
	reserve    bool // measure the target with a CPU for itself too
	sweep      bool // measure neighbours of 1 to 16 threads too
	only       string
	situations []situation
	seed       uint64
	emulated   bool // the CPUs are: the batch job is given time, for its work would take any
	vm         int  // CPUs of a virtual machine to measure in; 0: this machine
	table      bool // measure the table on this machine
	three      bool // measure the published one, in a virtual machine
	passes     int  // above 0: be the batch job
}

const afterChange = time.Second // after a change, before it is measured

// usual are the settings without flags.
func usual() *settings {
	return &settings{Settings: frame.Settings{Groups: frame.Pinnable}, slot: 10 * time.Second, repeat: 3, rate: 2000,
		highest: 32000,
		bound:   time.Millisecond, seed: 1}
}

func main() { frame.Main("reservation", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.slot, "seconds", "seconds of each measurement")
	set.IntVar(&s.repeat, "rounds", s.repeat, "rounds in which the situations take turns")
	set.Float64Var(&s.rate, "rate", s.rate, "requests a second to memcached at which its response time is taken")
	set.Float64Var(&s.highest, "highest", s.highest,
		"requests a second that the search for the highest throughput goes up to")
	set.DurationVar(&s.bound, "bound", s.bound, "p99 up to which a throughput counts")
	set.BoolVar(&s.search, "search", true, "search the highest throughput at which the p99 is within the bound")
	set.BoolVar(&s.split, "diagnose", true, "let plimsoll diagnose measure where the target's time went")
	set.BoolVar(&s.reserve, "reserve", true, "measure the target with a CPU for itself too")
	set.BoolVar(&s.sweep, "sweep", true, "measure neighbours of 1 to 16 threads too")
	set.StringVar(&s.only, "only", "", "measure only situations whose names contain this, and alone")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the arrivals and of the order")
	set.StringVar(&s.SVG, "svg", "", "write a chart to this file, of the situations on this machine")
	set.IntVar(&s.vm, "vm", 0, "measure in a virtual machine of so many CPUs, such as 4: what the target receives is "+
		"valid there, response times are those of no machine")
	set.BoolVar(&s.table, "table", false,
		"measure what a thread gets that shares its CPU with one of a neighbour that has one on each")
	set.BoolVar(&s.three, "three", false, "measure that as published, on three CPUs, in a virtual machine")
	set.BoolVar(&s.emulated, "emulated", false, "the CPUs are emulated: give the batch job time, and not work")
	set.IntVar(&s.passes, "work", 0, "be the batch job, of so many passes")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	s.situations = slices.DeleteFunc(situations(runtime.NumCPU(), s.sweep, s.reserve), func(sit situation) bool {
		return sit.Neighbour.Kind != nobody && !strings.Contains(sit.name(), s.only)
	})
	if s.three {
		s.vm, s.table = publishedCPUs, true
	}
	switch {
	case s.rate < 100 || s.rate > s.highest || s.highest <= lowest:
		return fmt.Errorf("-rate %g: must be from 100 to -highest, and that above %g", s.rate, lowest)
	case s.SVG != "" && (s.table || s.vm > 0):
		return errors.New("-svg: there is a chart of the situations on this machine only")
	case s.bound <= 0:
		return fmt.Errorf("-bound %s: must be above 0", s.bound)
	}
	return cmp.Or(frame.Within("-seconds", s.slot, time.Second, 10*time.Minute),
		frame.Within("-rounds", s.repeat, 1, math.MaxInt))
}

// Part is the batch job, where this process is that.
func (s *settings) Part() func() error {
	if s.passes == 0 {
		return nil
	}
	return func() error { return work(os.Stdin, os.Stdout, s.passes) }
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (frame.Findings, error) {
	if n := runtime.NumCPU(); n < 2 {
		return nil, fmt.Errorf("%d CPU: the target and its neighbour are to have reserved one each", n)
	}
	p := meet(f, float64(runtime.NumCPU())-targetRequest)
	if s.table {
		return s.measureTable(ctx, p), nil
	}
	return s.measure(ctx, p), nil
}

const (
	bootPatience = 3 * time.Minute  // what a virtual machine may take beyond the measurements
	guestSlow    = 20 * time.Second // what a situation takes there beside its measurements
	guestKernel  = "6.12"
)

// guestRate is a load that emulated CPUs can bear.
const guestRate = 100

// Guest is a virtual machine of other CPUs than this one has, where that was asked for: for the table, or for what the
// target receives in the situations.
func (s *settings) Guest() (vm *frame.VM, script string) {
	if s.vm == 0 {
		return nil, ""
	}
	vm = &frame.VM{Kernel: guestKernel, Cgroup: "v2", CPUs: s.vm, AtOnce: true}
	script = fmt.Sprintf("./reservation -plimsoll ./plimsoll -seconds %g -reserve=%v -json=%v", s.slot.Seconds(),
		s.reserve, s.JSON)
	if s.table {
		vm.Span = bootPatience + time.Duration(len(tableCases(s.vm)))*(s.slot+afterChange)
		return vm, script + " -table"
	}
	slots := time.Duration(s.repeat * len(situations(s.vm, s.sweep, s.reserve)))
	vm.Programs, vm.Span = []string{"memcached", "stress-ng"}, bootPatience+slots*(4*s.slot+guestSlow)
	return vm, script + fmt.Sprintf(" -emulated -rounds %d -rate %d -search=false -sweep=%v -diagnose=%v -seed %d "+
		"-only '%s'", s.repeat, guestRate, s.sweep, s.split, s.seed, s.only)
}
