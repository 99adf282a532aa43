// Command density finds out how many replicas of the demo's service one machine holds, without and with Plimsoll,
// when the 99th percentile of the response time must stay below a bound.
//
// The replicas' limits share the machine's CPUs evenly, so nothing is overcommitted: more replicas means a smaller
// limit for each, for the same load on each. Throttling is what ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
	"plimsoll/lab/frame"
)

const (
	openAtOnce = 64
	timeout    = 10 * time.Second
)

// settings say what a replica does, and how well.
type settings struct {
	frame.Settings
	bound  time.Duration // on p99
	use    float64       // CPUs that a replica uses on average
	work   time.Duration // CPU time of a request
	step   time.Duration // of load for each number of replicas
	seed   uint64
	cpus   int
	policy strategy.Policy
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{bound: 100 * time.Millisecond, use: 0.1, work: 20 * time.Millisecond, step: 8 * time.Second, seed: 1,
		cpus: runtime.NumCPU(), policy: strategy.Auto}
}

func main() { frame.Main("density", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.step, "seconds", "seconds of load for each number of replicas")
	set.StringVar((*string)(&s.policy), "policy", string(s.policy), "policy to compare with none")
	set.DurationVar(&s.bound, "p99", s.bound, "bound on the 99th percentile of the response time")
	set.DurationVar(&s.work, "work", s.work, "CPU time of a request")
	set.Float64Var(&s.use, "use", s.use, "CPUs that a replica uses on average")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the arrivals")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
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
func (s *settings) most() int { return int(0.9 * float64(s.cpus) / s.use) }

// replica is one service in its group.
type replica struct {
	experiment.Service
	group string
}

// bench is the machine with the replicas that were needed so far. They are kept for the next step.
type bench struct {
	*frame.Bench
	*settings
	agent    *experiment.Agent
	client   *load.Client
	replicas []*replica
	limit    cpu.Bandwidth // of the groups that were measured last
	measured []string
	size     int
	rate     float64
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (found *result, err error) {
	b := &bench{Bench: f, settings: s, client: load.NewClient(openAtOnce * s.most())}
	defer b.client.Close()
	if err := b.calibrate(ctx); err != nil {
		return nil, err
	}
	if b.agent, err = f.Agent(experiment.Setup{}); err != nil {
		return nil, err
	}
	found = &result{settings: s, Rate: b.rate, CPUs: s.cpus, Use: s.use, Bound: experiment.Milliseconds(s.bound)}
	if found.Without, err = b.search(ctx, strategy.None); err != nil {
		return nil, err
	}
	found.With, err = b.search(ctx, s.policy)
	return found, err
}

// calibrate finds the size of a request with the first replica, which is not limited yet.
func (b *bench) calibrate(ctx context.Context) error {
	if err := b.grow(1); err != nil {
		return err
	}
	first := b.replicas[0]
	size, cost, err := b.Calibrate(ctx, first.group, b.work, func(size int) error { return b.client.Get(ctx, first.URL(size)) })
	if err != nil {
		return err
	}
	b.size, b.rate = size, b.use/cost.Seconds()
	b.Say("a request costs %.1f ms of CPU time; up to %d replicas are tried, %v each", 1e3*cost.Seconds(), b.most(), b.step)
	return nil
}

// grow starts replicas until there are n.
func (b *bench) grow(n int) error {
	for len(b.replicas) < n {
		group, err := b.Add(fmt.Sprintf("web%d", len(b.replicas)))
		if err != nil {
			return err
		}
		r := &replica{Service: experiment.Service{Binary: b.settings.Plimsoll}, group: group}
		b.replicas = append(b.replicas, r)
		if err := b.Serve(r, group); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) search(ctx context.Context, policy strategy.Policy) (side, error) {
	found := side{Policy: policy}
	var err error
	found.Most, err = most(b.most(), func(n int) (bool, error) {
		s, err := b.try(ctx, policy, n)
		if err != nil {
			return false, fmt.Errorf("%d replicas, policy %s: %w", n, policy, err)
		}
		b.Say("%-17s  %2d replicas  p99 %4.0f ms  throttled %4.1f %%", policy, n, 1e3*s.P99.Seconds(), 100*s.Throttled)
		found.Steps = append(found.Steps, s)
		return s.fits(b.bound), nil
	})
	return found, err
}

// try measures n replicas under a policy. The limits are changed while the agent is passive.
func (b *bench) try(ctx context.Context, policy strategy.Policy, n int) (step, error) {
	if err := b.grow(n); err != nil {
		return step{}, err
	}
	if err := b.agent.Apply(strategy.None, b.measured, b.limit); err != nil {
		return step{}, err
	}
	b.measured = nil
	b.limit = experiment.Limited(b.limitOf(n))
	for i, r := range b.replicas {
		if err := b.Limit(r.group, b.limit); err != nil {
			return step{}, err
		}
		if i < n {
			b.measured = append(b.measured, r.group)
		}
	}
	if err := b.agent.Apply(policy, b.measured, b.limit); err != nil {
		return step{}, err
	}
	return b.load(ctx, n)
}

// load puts its own arrivals on each of n replicas at once.
func (b *bench) load(ctx context.Context, n int) (step, error) {
	before, err := b.counters(n)
	if err != nil {
		return step{}, err
	}
	outcomes := make([]*load.Outcome, n)
	var wait sync.WaitGroup
	for i, r := range b.replicas[:n] {
		wait.Go(func() {
			due := load.Poisson(b.seed, uint64(i), b.rate, b.step)
			outcomes[i] = load.Run(ctx, due, load.Bounds{Timeout: timeout, Open: openAtOnce},
				func(ctx context.Context) error { return b.client.Get(ctx, r.URL(b.size)) })
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return step{}, context.Cause(ctx)
	}
	after, err := b.counters(n)
	s := step{Replicas: n, Limit: b.limit.CPUs()}
	all := load.NewLatencies()
	for _, o := range outcomes {
		all.Merge(o.Latency)
		s.Requests += o.Requests()
		s.Errors += o.Errors
	}
	s.P99 = all.Quantile(0.99)
	if periods := after.Periods - before.Periods; periods > 0 {
		s.Throttled = float64(after.Throttled-before.Throttled) / float64(periods)
	}
	return s, err
}

// counters are those of n replicas together.
func (b *bench) counters(n int) (sum cpu.Counters, err error) {
	for _, r := range b.replicas[:n] {
		c, err := b.Tree().Counters(r.group)
		if err != nil {
			return sum, err
		}
		sum.Periods += c.Periods
		sum.Throttled += c.Throttled
	}
	return sum, nil
}
