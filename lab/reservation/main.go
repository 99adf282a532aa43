// Command reservation shows where a container does not get the CPU that it has reserved, and why: the experiments of
// Mind the Gap (SoCC '21), scaled to this machine.
//
// Approach: the target has reserved one CPU, its neighbour all others, and their weights are as much, so on paper nobody
// takes anything from anybody. The target is a batch job of one thread, which shows in how long it takes and how much
// of its CPU it receives, and then memcached under an open-loop load, which shows in its response time. The neighbour
// is stress-ng or many threads that sleep and wake, with a limit of what it has reserved (capped) or without one
// (burstable). With -table every thread has its place, one of the neighbour's beside the target's: what sharing a run
// queue costs, beside what the kernel's weights and limits make of it. With -three that is the published table of three
// CPUs, in a virtual machine.
//
// Other programs of the machine are not the subject: their CPU time is listed separately. With the target's CPU for
// itself the agent keeps them off that CPU too (reserve.shield, on cgroup v1), and puts them back.
//
// Known limits: the load generator runs on the same machine, before all ordinary tasks, and with the agent on its first
// CPU; what they use nobody else has.
// On two CPUs the scheduler can keep a target of one thread by itself, and often does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/figure"
	"plimsoll/lab/experiment"
)

// settings say what is measured.
type settings struct {
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
	cgroupRoot string
	plimsoll   string
	json       bool
	svg        string
	emulated   bool // the CPUs are: the batch job is given time, for its work would take any
	vm         int  // CPUs of a virtual machine to measure in; 0: this machine
	table      bool // measure the table on this machine
	three      bool // measure the published one, in a virtual machine
}

const afterChange = time.Second // after a change, before it is measured

func main() { os.Exit(experiment.Fail("reservation", run())) }

func run() error {
	s, inner, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	switch { // these end by a signal, at once
	case inner.passes > 0:
		return work(os.Stdin, os.Stdout, inner.passes)
	case inner.sleepers > 0:
		return sleepAndWake(os.Stdin, inner.sleepers)
	}
	ctx, stop := experiment.UntilAsked()
	defer stop()
	if s.plimsoll, err = experiment.FindBinary(s.plimsoll); err != nil {
		return err
	}
	switch {
	case s.three:
		return bootThree(ctx, s)
	case s.vm > 0:
		return boot(ctx, s)
	}
	if s.table {
		r, err := measureTable(ctx, s, experiment.Say)
		if err != nil {
			return err
		}
		return experiment.Tell(r, s.json)
	}
	r, err := measure(ctx, s, experiment.Say)
	if err != nil {
		return err
	}
	if s.svg != "" {
		if err := experiment.SavePicture(s.svg, r.chart()); err != nil {
			return err
		}
	}
	return experiment.Tell(r, s.json)
}

// inner is what this program does as a part of the experiment.
type inner struct{ passes, sleepers int }

func parse(args []string) (settings, inner, error) {
	var s settings
	var i inner
	set := flag.NewFlagSet("reservation", flag.ExitOnError)
	seconds := set.Float64("seconds", 10, "seconds of each measurement")
	set.IntVar(&s.repeat, "rounds", 3, "rounds in which the situations take turns")
	set.Float64Var(&s.rate, "rate", 2000, "requests a second to memcached at which its response time is taken")
	set.Float64Var(&s.highest, "highest", 32000, "requests a second that the search for the highest throughput goes up to")
	set.DurationVar(&s.bound, "bound", time.Millisecond, "p99 up to which a throughput counts")
	set.BoolVar(&s.search, "search", true, "search the highest throughput at which the p99 is within the bound")
	set.BoolVar(&s.split, "diagnose", true, "let plimsoll diagnose measure where the target's time went")
	set.BoolVar(&s.reserve, "reserve", true, "measure the target with a CPU for itself too")
	set.BoolVar(&s.sweep, "sweep", true, "measure neighbours of 1 to 16 threads too")
	set.StringVar(&s.only, "only", "", "measure only situations whose names contain this, and alone")
	set.Uint64Var(&s.seed, "seed", 1, "seed of the arrivals and of the order")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	set.StringVar(&s.svg, "svg", "", "write a chart to this file, of the situations on this machine")
	set.IntVar(&s.vm, "vm", 0, "measure in a virtual machine of so many CPUs, such as 4: what the target receives is valid there, response times are those of no machine")
	set.BoolVar(&s.table, "table", false, "measure what a thread gets that shares its CPU with one of a neighbour that has one on each")
	set.BoolVar(&s.three, "three", false, "measure that as published, on three CPUs, in a virtual machine")
	set.BoolVar(&s.emulated, "emulated", false, "the CPUs are emulated: give the batch job time, and not work")
	set.IntVar(&i.passes, "work", 0, "be the batch job, of so many passes")
	set.IntVar(&i.sleepers, "sleepers", 0, "be the neighbour that sleeps and wakes, with so many threads")
	if err := set.Parse(args); err != nil {
		return s, i, err
	}
	s.slot = experiment.Seconds(*seconds)
	s.situations = slices.DeleteFunc(situations(runtime.NumCPU(), s.sweep, s.reserve), func(sit situation) bool {
		return sit.Neighbour.Kind != nobody && !strings.Contains(sit.name(), s.only)
	})
	switch {
	case s.slot < time.Second || s.slot > 10*time.Minute:
		return s, i, fmt.Errorf("-seconds %g: must be from 1 to 600", *seconds)
	case s.repeat < 1:
		return s, i, fmt.Errorf("-rounds %d: must be 1 or more", s.repeat)
	case s.rate < 100 || s.rate > s.highest || s.highest <= lowest:
		return s, i, fmt.Errorf("-rate %g: must be from 100 to -highest, and that above %g", s.rate, lowest)
	case s.svg != "" && (s.table || s.three || s.vm > 0):
		return s, i, errors.New("-svg: there is a chart of the situations on this machine only")
	case s.svg != "" && figure.Known(s.svg) != nil:
		return s, i, fmt.Errorf("-svg %s: %w", s.svg, figure.Known(s.svg))
	case s.bound <= 0:
		return s, i, fmt.Errorf("-bound %s: must be above 0", s.bound)
	}
	return s, i, nil
}
