// Command hostile measures whether throttles of well-behaved groups are ended as soon as ever while the node around them
// is hostile: readers that never rest, a D-Bus that hangs, an API server that dies, tenants that ask for too much, disks
// that are full or slow, a log that nobody reads. It runs the real binary.
//
// Approach: victims are groups with a quota of 5 ms in 100 ms, each with a job of 12 ms of CPU time each second: a quarter
// of their limit on average, so that each refill is one that the group has saved up. Beside them stand many idle pods. A
// condition starts an agent of its own and measures it twice, first in quiet, then while the condition is hostile. So
// both windows have the same configuration, and only the hostility differs.
//
// Latency is the time from the begin of a victim's throttle, as a probe of the lab reports it, to the write that ends it,
// as inotify reports it to a thread of real-time priority: the agent's word is not needed. A throttle at the cap may not
// be ended and does not count (lab/reaction). One that the agent could have ended and that lasted to its period's end is
// missed; its latency is its length.
//
// Mounts are made in a mount namespace of this process, so that they end with it.
//
// Known limits: two programs of the same kind run in the kernel, the agent's and the lab's. inotify tells of a write when
// the writer is back from the kernel's function, some 20 µs late. A p99 of a window of ten seconds is that of four
// hundred throttles: the four worst decide, and on a machine that others use they may be the others'.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"plimsoll/lab/experiment"
)

// settings say what is measured.
type settings struct {
	Victims    int            `json:"victims"`
	Pods       int            `json:"pods"` // idle ones
	Asking     int            `json:"asking"`
	Throttling int            `json:"throttling"`
	Job        experiment.Job `json:"job"`
	span       time.Duration  // of each window
	warmUp     time.Duration
	only       []string // conditions; none: all
	cgroupRoot string
	plimsoll   string
	json       bool
}

func main() {
	os.Exit(experiment.Fail("hostile", run()))
}

func run() error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if s.Job.Worker >= 0 {
		return s.Job.Work(os.Stdin)
	}
	if err := isolate(); err != nil {
		return err
	}
	if s.plimsoll, err = experiment.FindBinary(s.plimsoll); err != nil {
		return err
	}
	ctx, stop := experiment.UntilAsked()
	defer stop()
	r, err := measure(ctx, s, experiment.Say)
	if err != nil {
		return err
	}
	if err := experiment.Tell(r, s.json); err != nil {
		return err
	}
	return r.failed()
}

func parse(args []string) (settings, error) {
	s := settings{warmUp: 4 * time.Second, Job: experiment.Job{Quota: experiment.LeastQuota, Every: time.Second}}
	set := flag.NewFlagSet("hostile", flag.ExitOnError)
	seconds := set.Float64("seconds", 10, "seconds of each window, of which each condition has two")
	set.IntVar(&s.Victims, "victims", 20, "groups that are throttled now and then within their share")
	set.IntVar(&s.Pods, "pods", 1000, "idle pods with a container each")
	set.IntVar(&s.Asking, "asking", 200, "groups that ask for CPUs of their own in vain, in condition exclusive")
	set.IntVar(&s.Throttling, "throttling", 1000, "groups that are throttled in every period, in condition tenants")
	names := conditionNames()
	only := set.String("only", "", "conditions to measure, with commas: "+strings.Join(names, ", ")+" (default: all)")
	s.Job.Flags(set)
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	s.span = experiment.Seconds(*seconds)
	if *only != "" {
		s.only = strings.Split(*only, ",")
	}
	for _, name := range s.only {
		if !slices.Contains(names, name) {
			return s, fmt.Errorf("-only: there is no condition %q; hint: %s", name, strings.Join(names, ", "))
		}
	}
	const most = 10 * time.Minute
	switch {
	case s.span < time.Second || s.span > most:
		return s, fmt.Errorf("-seconds %v: must be between 1 and %v", *seconds, most.Seconds())
	case s.Victims < 1 || s.Pods < 1 || s.Asking < 1 || s.Throttling < 1:
		return s, fmt.Errorf("-victims, -pods, -asking and -throttling: must be above 0")
	}
	return s, s.Job.Check()
}
