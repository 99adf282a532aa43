// Command soak runs the real agent for long beside pods that come and go, and judges that nothing of it grows, that
// no resize is lost, and that nothing of it stays.
//
// Problem: a leak of one descriptor for each container shows in no test of a minute, and kills an agent after a
// week. Limits are changed by their owners at any moment: while a quota is raised, while the agent is dead, while
// the API server does not answer. A write that is lost once in a thousand times is lost each day on a large
// cluster.
//
// Approach: 250 containers in pods, in control groups as a kubelet makes them, each with a process. An owner acts
// at random, as user, kubelet and runtime at once: it gives jobs to busy containers, so that they are throttled,
// resizes containers in place (the spec, then the files, then the status), restarts containers, and replaces pods.
// A small API server (api.go) tells the agent of the pods, and fails now and then: it is away, refuses, or hangs.
// The agent runs with --kube, and is killed (SIGKILL) and started anew all the time. The last quarter of the time
// has one agent that is not killed: a leak may be small beside what an agent needs for its warm-up.
//
// At each sample the kernel says what the agent holds (memory, descriptors, threads, inotify watches, entries of its
// eBPF maps, the files in its state directory), and the agent how many goroutines it has. Of the descriptors, one for
// each file of a group that is there is left out: their number follows what the groups do. growth.go says when
// something grows, judge.go what growth is allowed. lost.go looks for lost resizes while the agent runs. At the end
// all files of the CPU controller of all groups are compared, byte by byte, with those of a group in which the
// owner wrote the same and which no agent knows: after a stop, and after a kill with a restore.
//
// Known limits: there is no NRI, so an owner that lowers a limit meets the burst at times (EINVAL) and tries again,
// as a kubelet does. Reading the agent's status has it look at its groups more often than it would by itself. On a
// machine that is full no quota is raised, bursts are all that resizes meet, and a leak of memory may hide in noise;
// the result says so.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"plimsoll/lab/experiment"
)

// settings say what is done.
type settings struct {
	containers int
	span       time.Duration
	kill       time.Duration // between two kills
	last       time.Duration // the life that is not killed
	churn      float64       // actions of the owner in a second
	flap       time.Duration // from one failure of the API server to the next
	every      time.Duration // between two samples
	seed       uint64
	cgroupRoot string
	plimsoll   string
	json       bool
}

func main() {
	os.Exit(experiment.Fail("soak", run()))
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
	if err := experiment.Tell(result, s.json); err != nil {
		return err
	}
	return result.verdict()
}

func parse(args []string) (settings, error) {
	s := settings{}
	set := flag.NewFlagSet("soak", flag.ExitOnError)
	seconds := set.Float64("seconds", 3600, "seconds in all, without start and end")
	set.IntVar(&s.containers, "containers", 250, "containers, two in a pod; one in ten does jobs that its limit is too small for")
	set.DurationVar(&s.kill, "kill", time.Minute, "from the start of an agent to its kill -9")
	last := set.Float64("last", 0.25, "share of the time for the last agent, which is not killed: a leak shows only after an agent's first minutes")
	set.Float64Var(&s.churn, "churn", 5, "jobs, resizes, restarts of containers and replacements of pods in a second")
	set.DurationVar(&s.flap, "flap", 47*time.Second, "from one failure of the API server to the next; each lasts a fourth of that")
	set.DurationVar(&s.every, "every", 2*time.Second, "between two samples")
	set.Uint64Var(&s.seed, "seed", 1, "seed of the churn")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON, with all samples")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	s.span = experiment.Seconds(*seconds)
	s.last = time.Duration(*last * float64(s.span))
	const most = 24 * time.Hour
	switch {
	case s.span < 10*time.Second || s.span > most:
		return s, fmt.Errorf("-seconds %v: must be from 10 to %v", *seconds, most.Seconds())
	case s.containers < 10 || s.containers > 2000:
		return s, fmt.Errorf("-containers %d: must be from 10 to 2000", s.containers)
	case s.kill < 2*time.Second:
		return s, fmt.Errorf("-kill %v: must be 2s or more: the agent needs a second until it manages its groups", s.kill)
	case *last < 0.1 || *last > 0.9:
		return s, fmt.Errorf("-last %v: must be from 0.1 to 0.9", *last)
	case s.churn <= 0 || s.churn > 200:
		return s, fmt.Errorf("-churn %v: must be above 0, and 200 at most", s.churn)
	case s.flap < 3*time.Second:
		return s, fmt.Errorf("-flap %v: must be 3s or more", s.flap)
	case s.every < 100*time.Millisecond || s.every > s.kill/4:
		return s, fmt.Errorf("-every %v: must be from 100ms to a fourth of -kill", s.every)
	}
	return s, nil
}
