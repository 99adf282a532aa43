package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
)

const (
	openAtOnce = 64
	timeout    = 10 * time.Second
)

// replica is one service in its group.
type replica struct {
	experiment.Service
	group string
}

// bench is the machine with the replicas that were needed so far. They are kept for the next step.
type bench struct {
	settings
	groups   *experiment.Groups
	agent    *experiment.Agent
	client   *load.Client
	replicas []*replica
	limit    cpu.Bandwidth // of the groups that were measured last
	measured []string
	size     int
	rate     float64
}

func measure(ctx context.Context, s settings) (found *result, err error) {
	groups, err := experiment.NewGroups(s.cgroupRoot, "density")
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, groups: groups, client: load.NewClient(openAtOnce * s.most())}
	defer func() { err = errors.Join(experiment.OrInterrupt(ctx, err), b.close()) }()
	if err := b.calibrate(ctx); err != nil {
		return nil, err
	}
	if b.agent, err = experiment.StartAgent(experiment.Setup{Binary: s.plimsoll, Root: s.cgroupRoot}, groups); err != nil {
		return nil, err
	}
	found = &result{settings: s, rate: b.rate}
	if found.without, err = b.search(ctx, strategy.None); err != nil {
		return nil, err
	}
	found.with, err = b.search(ctx, s.policy)
	return found, err
}

func (b *bench) close() error {
	b.client.Close()
	var errs []error
	if b.agent != nil {
		errs = append(errs, b.agent.Stop())
	}
	for _, r := range b.replicas {
		errs = append(errs, r.Stop())
	}
	return errors.Join(append(errs, b.groups.Close())...)
}

// calibrate finds the size of a request with the first replica, which is not limited yet.
func (b *bench) calibrate(ctx context.Context) error {
	if err := b.grow(1); err != nil {
		return err
	}
	first := b.replicas[0]
	size, cost, err := load.Calibrate(b.work, b.work/20, 1<<19, func(size int) (time.Duration, error) {
		return b.groups.Cost(ctx, first.group, func() error { return b.client.Get(ctx, first.URL(size)) })
	})
	if err != nil && !errors.Is(err, load.ErrUnsettled) {
		return err
	}
	b.size, b.rate = size, b.use/cost.Seconds()
	experiment.Say("a request costs %.1f ms of CPU time; up to %d replicas are tried, %v each", 1e3*cost.Seconds(), b.most(), b.step)
	return nil
}

// grow starts replicas until there are n.
func (b *bench) grow(n int) error {
	for len(b.replicas) < n {
		group, err := b.groups.Add(fmt.Sprintf("web%d", len(b.replicas)))
		if err != nil {
			return err
		}
		r := &replica{Service: experiment.Service{Binary: b.plimsoll}, group: group}
		b.replicas = append(b.replicas, r)
		if err := r.Start(func(pid int) error { return b.groups.Enter(group, pid) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) search(ctx context.Context, policy strategy.Policy) (side, error) {
	found := side{policy: policy}
	var err error
	found.most, err = most(b.most(), func(n int) (bool, error) {
		s, err := b.try(ctx, policy, n)
		if err != nil {
			return false, fmt.Errorf("%d replicas, policy %s: %w", n, policy, err)
		}
		experiment.Say("%-17s  %2d replicas  p99 %4.0f ms  throttled %4.1f %%", policy, n, 1e3*s.p99.Seconds(), 100*s.throttled)
		found.steps = append(found.steps, s)
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
		if err := b.groups.Limit(r.group, b.limit); err != nil {
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
	s := step{replicas: n, limit: b.limit.CPUs()}
	all := load.NewLatencies()
	for _, o := range outcomes {
		all.Merge(o.Latency)
		s.requests += o.Requests()
		s.errors += o.Errors
	}
	s.p99 = all.Quantile(0.99)
	if periods := after.Periods - before.Periods; periods > 0 {
		s.throttled = float64(after.Throttled-before.Throttled) / float64(periods)
	}
	return s, err
}

// counters are those of n replicas together.
func (b *bench) counters(n int) (sum cpu.Counters, err error) {
	for _, r := range b.replicas[:n] {
		c, err := b.groups.Tree().Counters(r.group)
		if err != nil {
			return sum, err
		}
		sum.Periods += c.Periods
		sum.Throttled += c.Throttled
	}
	return sum, nil
}
