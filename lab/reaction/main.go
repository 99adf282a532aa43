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
// Known limits: the cost of the programs in the kernel is not in the agent's CPU time. Where others take the CPUs from a
// group after its throttle ended, that time counts as lost too, by both agents.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
)

// settings say what is measured.
type settings struct {
	groups     int
	job        experiment.Job
	span       time.Duration // of each run
	warmUp     time.Duration
	policy     strategy.Policy
	cgroupRoot string
	plimsoll   string
	events     []string // flags of the agent that is subscribed
	json       bool
}

func main() {
	os.Exit(experiment.Fail("reaction", run()))
}

func run() error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if s.job.Worker >= 0 {
		return s.job.Work(os.Stdin)
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
	s := settings{warmUp: 2 * time.Second, job: experiment.Job{Quota: experiment.LeastQuota, Every: 4 * time.Second}}
	set := flag.NewFlagSet("reaction", flag.ExitOnError)
	seconds := set.Float64("seconds", 30, "seconds of each of the four runs, after the warm-up")
	set.IntVar(&s.groups, "groups", 100, "groups that are throttled")
	s.job.Flags(set)
	policy := set.String("policy", string(strategy.Auto), "policy of the groups: auto or cfsQuotaBurstOnly")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	subscribed := set.String("subscribed", "", "flags of the agent that is subscribed to throttle events, such as --ahead=false")
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	s.span = experiment.Seconds(*seconds)
	s.policy, s.events = strategy.Policy(*policy), strings.Fields(*subscribed)
	const most = 10 * time.Minute
	switch {
	case s.groups < 1 || s.groups > 500:
		return s, fmt.Errorf("-groups %d: must be from 1 to 500", s.groups)
	case s.span < time.Second || s.span > most:
		return s, fmt.Errorf("-seconds %v: must be between 1 and %v", *seconds, most.Seconds())
	case s.policy != strategy.Auto && s.policy != strategy.CFSQuotaBurstOnly:
		return s, fmt.Errorf("-policy %q: must be auto or cfsQuotaBurstOnly, which end throttles", s.policy)
	}
	return s, s.job.Check()
}
