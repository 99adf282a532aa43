// Command hostile measures whether throttles of well-behaved groups are ended as soon as ever while the node around
// them is hostile: readers that never rest, a D-Bus that hangs, an API server that dies, tenants that ask for too much,
// disks that are full or slow, a log that nobody reads. It runs the real binary.
//
// Approach: victims are groups with a quota of 5 ms in 100 ms, each with a job of 12 ms of CPU time every four seconds:
// a sixteenth of their limit on average, so that each refill is one that the group has saved up. Writes may take a
// fiftieth of the time (internal/tenant), and each takes long where there are four thousand groups. A job that other
// load drives from CPU to CPU needs up to ten. With a job every two seconds victims used up their share: throttles were
// refused that nothing here tells from late ones. Beside them stand many idle pods. All groups together have the weight
// that a kubelet gives to all pods of a full node, 1,024 for each CPU, and the agent is an ordinary process beside
// them. A condition starts an agent of its own and measures it twice, first in quiet, then while the condition is
// hostile. So both windows have the same configuration, and only the hostility differs.
//
// Latency is the time from the begin of a victim's throttle until it ends, as a probe of the lab reports both, or until
// a write that ends it, as inotify reports it to a thread of real-time priority, whichever is first: the agent's word
// is not needed. A throttle at the cap may not be ended and does not count (lab/reaction). One that the agent could
// have ended and that lasted to its period's end is missed; its latency is its length.
//
// Mounts are made in a mount namespace of this process, so that they end with it.
//
// Known limits: two programs of the same kind run in the kernel, the agent's and the lab's. A p99 of a window is that
// of some three hundred throttles, and of some forty in condition tenants: the worst decide, and on a virtual machine
// they may be those that waited for the hypervisor. So each window has the part of the CPUs' time that it took.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"plimsoll/lab/frame"
)

// settings say what is measured.
type settings struct {
	frame.Settings
	Victims    int           `json:"victims"`
	Pods       int           `json:"pods"` // idle ones
	Asking     int           `json:"asking"`
	Throttling int           `json:"throttling"`
	Job        frame.Job     `json:"job"`
	span       time.Duration // of each window
	warmUp     time.Duration
	only       []string // conditions; none: all
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{Settings: frame.Settings{Groups: frame.Pinnable}, Victims: 20, Pods: 1000, Asking: 200,
		Throttling: 1000,
		span:       30 * time.Second, warmUp: 4 * time.Second, Job: frame.Job{Quota: frame.LeastQuota,
			Every: 4 * time.Second}}
}

func main() { frame.Main("hostile", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.span, "seconds", "seconds of each window, of which each condition has two")
	set.IntVar(&s.Victims, "victims", s.Victims, "groups that are throttled now and then within their share")
	set.IntVar(&s.Pods, "pods", s.Pods, "idle pods with a container each")
	set.IntVar(&s.Asking, "asking", s.Asking, "groups that ask for exclusive CPUs in vain, in condition exclusive")
	set.IntVar(&s.Throttling, "throttling", s.Throttling,
		"groups that are throttled in every period, in condition tenants")
	set.Func("only", "conditions to measure, with commas: "+strings.Join(conditionNames(), ", ")+" (default: all)",
		func(list string) error {
			s.only = strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
			return nil
		})
	s.Job.Flags(set)
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	for _, name := range s.only {
		if names := conditionNames(); !slices.Contains(names, name) {
			return fmt.Errorf("-only: there is no condition %q; hint: %s", name, strings.Join(names, ", "))
		}
	}
	if s.Victims < 1 || s.Pods < 1 || s.Asking < 1 || s.Throttling < 1 {
		return errors.New("-victims, -pods, -asking and -throttling: must be above 0")
	}
	return errors.Join(frame.Within("-seconds", s.span, time.Second, 10*time.Minute), s.Job.Check())
}

// Part is a worker, where this process is one, or else starts this program again with mounts of its own.
func (s *settings) Part() func() error {
	if part := s.Job.Part(); part != nil || os.Getenv(isolated) != "" {
		return part
	}
	return isolate
}
