// Command reaction measures how long throttles last when the agent subscribes to throttle events, beside an agent that
// polls for throttles: the real binary, the same jobs, on an idle machine and on a full one.
//
// Approach: each of many groups may use a quota of 100 ms, and gets a job of 2.4 quotas of CPU time every four seconds:
// more than the group may have saved up, and so seldom that no agent has the quota still raised from the last job. A
// probe of the lab reports when each throttle began and when a task of the group ran again. The full machine is kept so
// by offline work, class BE and behind all others (cpu.idle): beside ordinary work as much, the guard rightly grants
// nothing.
//
// A job is one thread, but its program has others, as most have, and each CPU takes a slice of 5 ms at a time. Runtime
// of one CPU is missing on another. So a group with a quota of a few slices may have got its cap (three quotas) and be
// throttled all the same. No refill is allowed then, and the throttle lasts to its period's end under any agent. So the
// cost of a throttle is shown twice: for all throttles, and for those that may be ended, which are all but those at the
// cap. No agent decides which these are: the lab uses the kernel's counters of the period at the throttle's begin
// (used, and left in the pool and on CPUs), for both agents alike. The aim, twenty times less than under polling,
// applies to the median, the p99 and the mean of those that may be ended, and to the median of all. p99 and mean of all
// depend on the share of throttles at the cap, and so on the jobs. They have no aim.
//
// Known limits: the cost of the programs in the kernel is not in the agent's CPU time. Where others take the CPUs from
// a group after its throttle ended, that time counts as lost too, by both agents.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

// settings say what is measured.
type settings struct {
	frame.Settings
	groups int
	job    frame.Job
	span   time.Duration // of each run
	warmUp time.Duration
	policy strategy.Policy
	events []string // flags of the agent that is subscribed
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{groups: 100, span: 30 * time.Second, warmUp: 2 * time.Second, policy: strategy.Auto,
		job: frame.Job{Quota: frame.LeastQuota, Every: 4 * time.Second}}
}

func main() { frame.Main("reaction", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.span, "seconds", "seconds of each of the four runs, after the warm-up")
	set.IntVar(&s.groups, "groups", s.groups, "groups that are throttled")
	s.job.Flags(set)
	set.StringVar((*string)(&s.policy), "policy", string(s.policy), "policy of the groups: auto or cfsQuotaBurstOnly")
	set.Func("subscribed", "flags of the agent that is subscribed to throttle events, such as --ahead=false",
		func(text string) error {
			s.events = strings.Fields(text)
			return nil
		})
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	if s.policy != strategy.Auto && s.policy != strategy.CFSQuotaBurstOnly {
		return fmt.Errorf("-policy %q: must be auto or cfsQuotaBurstOnly, which end throttles", s.policy)
	}
	return cmp.Or(frame.Within("-groups", s.groups, 1, 500),
		frame.Within("-seconds", s.span, time.Second, 10*time.Minute), s.job.Check())
}

// Part is a worker, where this process is one.
func (s *settings) Part() func() error { return s.job.Part() }

// bench is a measurement under way.
type bench struct {
	*frame.Bench
	*settings
	fleet   *frame.Jobs
	offline *experiment.Offline // nil: the machine is left as it is
}

// Measure runs both scenarios.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	b := &bench{Bench: f, settings: s, fleet: frame.NewJobs(f.Groups, s.groups, s.job.Quota)}
	r := &result{Machine: f.Machine(), Groups: s.groups, Quota: s.job.Quota, Every: s.job.Every,
		Seconds: s.span.Seconds(), Policy: s.policy, Seed: s.job.Seed}
	for _, loaded := range []bool{false, true} {
		if loaded {
			b.offline = f.Offline()
			r.Behind = b.offline.Behind
		}
		r.Scenarios = append(r.Scenarios, scenario{Loaded: loaded, Events: b.run(ctx, s.events...),
			Polled: b.run(ctx, "--poll")})
	}
	return r, nil
}

// run measures one agent, from the same first job on.
func (b *bench) run(ctx context.Context, flags ...string) (r outcome) {
	b.Say("%s, agent flags %q: %v", scenario{Loaded: b.offline != nil}.name(), flags, b.warmUp+b.span)
	b.Scope(ctx, func(f *frame.Bench) {
		p := frame.Must(frame.Listen(b.fleet.Inodes))
		f.Undo(p.Close)
		f.Undo(b.fleet.Stop)
		begin := b.fleet.Prepare(b.job)
		a := f.Agent(experiment.Setup{Flags: flags, Offline: b.offline})
		frame.Check(a.Apply(b.policy, b.fleet.Paths, b.fleet.Limit))
		frame.Check(begin())
		frame.Check(experiment.Pause(ctx, b.warmUp))
		r = b.window(ctx, a, p)
	})
	return r
}

// reading are the counters at one end of the window.
type reading struct {
	at     time.Duration
	tally  tally
	used   time.Duration // by the groups
	status report.Status
}

func (b *bench) read(ctx context.Context, a *experiment.Agent, p *probe.Probe) reading {
	r := reading{status: frame.Must(a.Status(ctx)), used: b.fleet.AllUsed()}
	r.tally, r.at = count(p, b.fleet.Inodes), probe.Monotonic()
	frame.Check(b.fleet.Working())
	return r
}

// window measures between two readings. The jobs go on until all is read.
func (b *bench) window(ctx context.Context, a *experiment.Agent, p *probe.Probe) outcome {
	first, last := frame.Around(func() reading { return b.read(ctx, a, p) },
		func() { frame.Check(experiment.Pause(ctx, b.span)) })
	events, err := frame.Collect(p, last.at)
	if err != nil {
		frame.Check(fmt.Errorf("read the throttles of the window: %w", err))
	}
	all, endable := lengths(events, b.job.Quota, first.at, last.at)
	return between(first, last, sum(all), sum(endable))
}

// between is what came of a run.
func between(first, last reading, all, endable lost) outcome {
	span := (last.at - first.at).Seconds()
	events := last.status.Events
	return outcome{
		Subscribed: events.Subscribed, Why: events.Why, Lost: all, Endable: endable,
		Tally:   last.tally.since(first.tally),
		Refills: events.Refills - first.status.Events.Refills, DelayP50: events.DelayP50, DelayP99: events.DelayP99,
		LostPerSecond: all.Total.Seconds() / span,
		Writes:        float64(experiment.Writes(last.status)-experiment.Writes(first.status)) / span,
		AgentCPU:      (last.status.Self.CPU - first.status.Self.CPU).Seconds() / span,
		GroupsCPU:     (last.used - first.used).Seconds() / span,
		Node:          last.status.Node,
	}
}
