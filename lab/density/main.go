// Command density finds out how many replicas of the demo's service one machine holds, without and with Plimsoll,
// when the 99th percentile of the response time must stay below a bound.
//
// The replicas' limits share the machine's CPUs evenly, so nothing is overcommitted: more replicas means a smaller
// limit for each, for the same load on each. Throttling is what ends it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
)

// settings say what a replica does, and how well.
type settings struct {
	bound      time.Duration // on p99
	use        float64       // CPUs that a replica uses on average
	work       time.Duration // CPU time of a request
	step       time.Duration // of load for each number of replicas
	seed       uint64
	cpus       int
	policy     strategy.Policy
	cgroupRoot string
	plimsoll   string
}

func main() {
	os.Exit(experiment.Fail("density", run()))
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
	result, err := measure(ctx, s)
	if err != nil {
		return err
	}
	return experiment.Tell(result, false)
}

func parse(args []string) (settings, error) {
	s := settings{cpus: runtime.NumCPU()}
	set := flag.NewFlagSet("density", flag.ExitOnError)
	seconds := set.Float64("seconds", 8, "seconds of load for each number of replicas")
	policy := set.String("policy", string(strategy.Auto), "policy to compare with none")
	set.DurationVar(&s.bound, "p99", 100*time.Millisecond, "bound on the 99th percentile of the response time")
	set.DurationVar(&s.work, "work", 20*time.Millisecond, "CPU time of a request")
	set.Float64Var(&s.use, "use", 0.1, "CPUs that a replica uses on average")
	set.Uint64Var(&s.seed, "seed", 1, "seed of the arrivals")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	if err := set.Parse(args); err != nil {
		return s, err
	}
	s.step = experiment.Seconds(*seconds)
	s.policy = strategy.Policy(*policy)
	return s, s.check()
}

func (s settings) check() error {
	if err := (strategy.Patch{Policy: &s.policy}).Check(); err != nil {
		return err
	}
	switch {
	case s.policy == strategy.None:
		return errors.New("-policy none: is what the policy is compared with")
	case s.step < time.Second:
		return fmt.Errorf("-seconds %g: must be 1 or more", s.step.Seconds())
	case s.work < time.Millisecond:
		return fmt.Errorf("-work %v: must be 1ms or more", s.work)
	case s.bound <= s.work:
		return fmt.Errorf("-p99 %v: must be more than the work of one request, %v", s.bound, s.work)
	case s.use <= 0 || s.most() < 1:
		return fmt.Errorf("-use %g: must be above 0 and leave room for one replica on %d CPUs", s.use, s.cpus)
	}
	return nil
}

// most is how many replicas could do their work at all: with nine tenths of the machine, for the load generator
// needs some too.
func (s settings) most() int { return int(0.9 * float64(s.cpus) / s.use) }
