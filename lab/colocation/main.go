// Command colocation measures what an offline task costs an online one on the same machine, and what each mechanism of
// this machine that puts the online one first takes off that cost: the published experiment with nginx and ffmpeg.
//
// Approach: nginx compresses a text for each of a constant rate of requests, each of which counts from when it was due;
// ffmpeg transcodes a generated film with x264 in twice as many threads as there are CPUs. Each row is one way to have
// them on the machine: nginx alone (baseline), both with equal shares (control), and both with one mechanism, set by a
// real agent. The rows take turns in rounds, and a row's figure is the median of its rounds. What nginx lost is split:
// the kernel counts how long its tasks waited on run queues, and the rest is what they then took longer to run
// (caches, memory, the sibling of a core).
//
// Known limits: the load generator runs on the same machine, in the place of another one: it comes before all ordinary
// tasks and its CPU time is part of the machine's. The published machines had many CPUs, this one may have few.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"plimsoll/lab/experiment"
)

// settings say what is measured.
type settings struct {
	rows       []row
	perRow     time.Duration // of load, all rounds together
	rounds     int
	rate       float64 // requests a second
	seed       uint64
	cgroupRoot string
	plimsoll   string
	json       bool
	svg        string
	emulated   bool   // the CPUs are: all is slow
	vm         string // kernel of a virtual machine to run in; "": this machine
}

func main() {
	os.Exit(experiment.Fail("colocation", run()))
}

func run() error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if s.plimsoll, err = experiment.FindBinary(s.plimsoll); err != nil {
		return err
	}
	ctx, stop := experiment.UntilAsked()
	defer stop()
	if s.vm != "" {
		return boot(ctx, s, s.vm)
	}
	result, err := measure(ctx, s, experiment.Say)
	if err != nil {
		return err
	}
	if s.svg != "" {
		if err := experiment.SavePicture(s.svg, result.chart()); err != nil {
			return err
		}
	}
	return experiment.Tell(result, s.json)
}

func parse(args []string) (settings, error) {
	var s settings
	set := flag.NewFlagSet("colocation", flag.ExitOnError)
	seconds := set.Float64("seconds", 30, "seconds of load for each row")
	rows := set.String("rows", "", "rows to measure, separated by commas (default: all that this machine has)")
	set.IntVar(&s.rounds, "rounds", 0, "rounds in which the rows take turns (0: of about 6 s each)")
	set.Float64Var(&s.rate, "rate", 75*float64(runtime.NumCPU()), "requests a second (default: 75 for each CPU; in a virtual machine 10)")
	set.Uint64Var(&s.seed, "seed", 1, "seed of the rows' order")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	set.StringVar(&s.svg, "svg", "", "write a chart to this file")
	set.StringVar(&s.vm, "vm", "", "run in a virtual machine with this kernel, such as 6.18, which has sched_ext; its response times are those of no machine")
	set.BoolVar(&s.emulated, "emulated", false, "the CPUs are emulated: a small document and a small film")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	if s.vm != "" && !given(set, "rate") {
		s.rate = emulatedRate
	}
	s.perRow = experiment.Seconds(*seconds)
	if s.rounds == 0 {
		s.rounds = max(1, int(*seconds/6+0.5))
	}
	if *rows != "" {
		var err error
		if s.rows, err = parseRows(strings.Split(*rows, ",")); err != nil {
			return s, err
		}
	}
	return s, s.check()
}

// emulatedRate is a load that two emulated CPUs can bear.
const emulatedRate = 10

// given says whether a flag was.
func given(set *flag.FlagSet, name string) (is bool) {
	set.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

func (s settings) check() error {
	switch slot := s.perRow / time.Duration(max(s.rounds, 1)); {
	case s.rounds < 1 || slot < time.Second:
		return fmt.Errorf("%d rounds in %v: must be 1 or more, of 1 s or more each", s.rounds, s.perRow)
	case s.rate < 1 || s.rate > 10000:
		return fmt.Errorf("-rate %g: must be from 1 to 10000", s.rate)
	case s.rate*slot.Seconds() < fewRequests:
		return fmt.Errorf("-rate %g for %v a round: a p99 needs %d requests or more", s.rate, slot, fewRequests)
	}
	return nil
}
