// Command burst measures requests that come at once to a service with a limit: how much later than without a limit all
// are answered, under each policy, and how much CPU time the agent takes meanwhile.
//
// Problem: the demo's p99 depends on the slowest thirty of 3,000 requests, and two equal runs differ in it by a
// tenth. A request is slow there because others came with it.
//
// Approach: repeat just that: one to three requests at once, at any phase of the period, each time after so much
// idle time that the mean use is that of the demo. The modes take turns in short rounds, and the result is the mean
// difference to the same round without a limit, with its 95 % interval.
//
// Known limits: the load generator and the agent run on the same machine, and take time from a service that uses all of
// its CPUs, as they do on any node that is full. The interval is that of a normal distribution: with a handful of rounds
// it is too narrow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
)

// settings are what was asked for.
type settings struct {
	rounds               int
	seed                 uint64
	cgroupRoot, plimsoll string
	json                 bool
}

func main() {
	os.Exit(experiment.Fail("burst", run()))
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
	result, err := measure(ctx, s, experiment.Say)
	if err != nil {
		return err
	}
	return experiment.Tell(result, s.json)
}

func parse(args []string) (settings, error) {
	var s settings
	set := flag.NewFlagSet("burst", flag.ExitOnError)
	set.IntVar(&s.rounds, "rounds", 30, "rounds in which the modes take turns, about 14 s each")
	set.Uint64Var(&s.seed, "seed", 1, "seed of the order and of the idle times")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 2 || s.rounds > 1000 {
		return s, fmt.Errorf("-rounds %d: must be from 2 to 1000", s.rounds)
	}
	return s, nil
}

// modes are those that are compared; the first is what the others are compared with.
func modes() []experiment.Mode {
	return []experiment.Mode{experiment.Unlimited, experiment.Mode(strategy.CFSQuotaBurstOnly), experiment.Mode(strategy.Auto)}
}

func measure(ctx context.Context, s settings, say func(string, ...any)) (r *result, err error) {
	b, err := open(ctx, s)
	if err != nil {
		return nil, experiment.OrInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(experiment.OrInterrupt(ctx, err), b.close()) }()
	var all []burst
	for round := range s.rounds {
		for _, mode := range experiment.Order(modes(), s.seed, round) {
			bursts, err := b.slot(ctx, mode, round)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", mode, round+1, err)
			}
			all = append(all, bursts...)
		}
		say("[%d/%d]", round+1, s.rounds)
	}
	return &result{Schema: schema, Kernel: experiment.Kernel(), Work: experiment.Milliseconds(b.cost), Limit: limitCPUs,
		Rounds: s.rounds, Rows: summarize(all)}, nil
}
