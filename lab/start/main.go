// Command start measures how long a real JVM takes until it is ready: with a limit alone, with the agent beside it, and
// without a limit.
//
// Approach: the same program (Ready.java, which is compiled, loads classes and builds tables) is started in a new group
// again and again, one mode after another in each round, so that a machine that changes does so for all of them. Each mode
// is judged by its median. Where there is no limit the JVM is told what it sees under one: one processor, and the
// garbage collector that goes with it.
//
// The kernel tells a probe of the lab's own how often and for how long a group stood still. That figure holds on a busy
// machine too, where seconds say little.
//
// Known limits: what the agent and its programs in the kernel cost is part of its mode's time.
package main

import (
	"flag"
	"fmt"
	"os"

	"plimsoll/lab/experiment"
)

// settings say what is measured.
type settings struct {
	limit      float64 // CPUs
	percent    int64   // startupBurstPercent
	threshold  int64   // sharePoolThresholdPercent
	rounds     int
	pod        bool
	flags      string // of the JVM
	cgroupRoot string
	plimsoll   string
	java       string
	json       bool
}

func main() {
	os.Exit(experiment.Fail("start", run()))
}

func run() error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if s.plimsoll, err = experiment.FindBinary(s.plimsoll); err != nil {
		return err
	}
	if s.java, err = experiment.Program("java"); err != nil {
		return err
	}
	ctx, stop := experiment.UntilAsked()
	defer stop()
	result, err := measure(ctx, s, experiment.Say)
	if err != nil {
		return err
	}
	return experiment.Tell(result, s.json)
}

func parse(args []string) (settings, error) {
	var s settings
	set := flag.NewFlagSet("start", flag.ExitOnError)
	set.Float64Var(&s.limit, "limit", 0.5, "CPUs that the JVM is limited to")
	set.Int64Var(&s.percent, "percent", 1000, "startupBurstPercent: the cap of a period, in percent of the limit")
	set.Int64Var(&s.threshold, "threshold", 100, "sharePoolThresholdPercent: up to where the node's use may come")
	set.IntVar(&s.rounds, "rounds", 7, "starts in each mode")
	set.BoolVar(&s.pod, "pod", false, "a pod with the same limit around each JVM, as Kubernetes has it")
	set.StringVar(&s.flags, "java", "", "more flags of the JVM, such as -XX:TieredStopAtLevel=1, with which its start uses fewer CPUs at once")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	switch {
	case s.limit < 0.1 || s.limit > 1: // above 1 it sees more than one processor
		return s, fmt.Errorf("-limit %g: must be from 0.1 to 1", s.limit)
	case s.rounds < 1 || s.rounds > 100:
		return s, fmt.Errorf("-rounds %d: must be from 1 to 100", s.rounds)
	case s.percent < 100 || s.percent > 10000:
		return s, fmt.Errorf("-percent %d: must be from 100 to 10000", s.percent)
	case s.threshold < 1 || s.threshold > 100:
		return s, fmt.Errorf("-threshold %d: must be from 1 to 100", s.threshold)
	}
	return s, nil
}
