package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/lab/experiment"
)

// bench is a measurement under way.
type bench struct {
	settings
	fleet   *experiment.Jobs
	offline *experiment.Offline // nil: the machine is left as it is
	say     func(format string, args ...any)
}

// measure runs both scenarios and cleans up, however it ends. Progress goes to say.
func measure(ctx context.Context, s settings, say func(string, ...any)) (r *result, err error) {
	groups, err := experiment.NewGroups(s.cgroupRoot, "reaction")
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, say: say}
	defer func() { err = errors.Join(err, b.close(groups)) }()
	if b.fleet, err = experiment.NewJobs(groups, s.groups, s.job.Quota); err != nil {
		return nil, err
	}
	r = &result{Groups: s.groups, Quota: s.job.Quota, Every: s.job.Every, Seconds: s.span.Seconds(), Policy: s.policy, Seed: s.job.Seed, CPUs: runtime.NumCPU(),
		Cgroup: groups.Tree().Version().String()}
	for _, loaded := range []bool{false, true} {
		if loaded {
			if b.offline, err = experiment.StartOffline(s.cgroupRoot); err != nil {
				return nil, err
			}
			r.Behind = b.offline.Behind
		}
		sc := scenario{Loaded: loaded}
		if sc.Events, err = b.run(ctx, s.events...); err != nil {
			return nil, err
		}
		if sc.Polled, err = b.run(ctx, "--poll"); err != nil {
			return nil, err
		}
		r.Scenarios = append(r.Scenarios, sc)
	}
	return r, nil
}

// close ends the processes, then removes what they were in.
func (b *bench) close(groups *experiment.Groups) error {
	var errs []error
	if b.offline != nil {
		errs = append(errs, b.offline.Stop())
	}
	return errors.Join(append(errs, groups.Close())...)
}

// run measures one agent, from the same first job on.
func (b *bench) run(ctx context.Context, flags ...string) (r outcome, err error) {
	b.say("%s, agent flags %q: %v", scenario{Loaded: b.offline != nil}.name(), flags, b.warmUp+b.span)
	p, err := experiment.Listen(b.fleet.Inodes)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.fleet.Stop(), p.Close()) }()
	begin, err := b.fleet.Prepare(b.job)
	if err != nil {
		return r, err
	}
	setup := experiment.Setup{Binary: b.plimsoll, Root: b.cgroupRoot, Flags: flags, Offline: b.offline}
	a, err := experiment.StartAgent(setup, b.fleet.Groups)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	if err := a.Apply(b.policy, b.fleet.Paths, b.fleet.Limit); err != nil {
		return r, err
	}
	if err := begin(); err != nil {
		return r, err
	}
	if err := experiment.Pause(ctx, b.warmUp); err != nil {
		return r, err
	}
	return b.window(ctx, a, p)
}

// reading are the counters at one end of the window.
type reading struct {
	at     time.Duration
	tally  tally
	used   time.Duration // by the groups
	status report.Status
}

func (b *bench) read(ctx context.Context, a *experiment.Agent, p *probe.Probe) (r reading, err error) {
	if r.status, err = a.Status(ctx); err != nil {
		return r, err
	}
	if r.used, err = b.fleet.AllUsed(); err != nil {
		return r, err
	}
	r.tally, r.at = count(p, b.fleet.Inodes), probe.Monotonic()
	return r, b.fleet.Working()
}

// window measures between two readings. The jobs go on until all is read.
func (b *bench) window(ctx context.Context, a *experiment.Agent, p *probe.Probe) (r outcome, err error) {
	first, err := b.read(ctx, a, p)
	if err != nil {
		return r, err
	}
	if err := experiment.Pause(ctx, b.span); err != nil {
		return r, err
	}
	last, err := b.read(ctx, a, p)
	if err != nil {
		return r, err
	}
	events, err := experiment.Collect(p, last.at)
	if err != nil {
		return r, fmt.Errorf("read the throttles of the window: %w", err)
	}
	all, endable := lengths(events, b.job.Quota, first.at, last.at)
	return between(first, last, sum(all), sum(endable)), nil
}

// between is what came of a run.
func between(first, last reading, all, endable lost) outcome {
	span := (last.at - first.at).Seconds()
	events := last.status.Events
	return outcome{
		Subscribed: events.Subscribed, Why: events.Why, Lost: all, Endable: endable, Tally: last.tally.since(first.tally),
		Refills: events.Refills - first.status.Events.Refills, DelayP50: events.DelayP50, DelayP99: events.DelayP99,
		LostPerSecond: all.Total.Seconds() / span,
		Writes:        float64(experiment.Writes(last.status)-experiment.Writes(first.status)) / span,
		AgentCPU:      (last.status.Self.CPU - first.status.Self.CPU).Seconds() / span,
		GroupsCPU:     (last.used - first.used).Seconds() / span,
		Node:          last.status.Node,
	}
}
