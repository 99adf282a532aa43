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
// A small API server (lab/kubeapi) tells the agent of the pods, and fails now and then: it is away, refuses, or hangs.
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
	"cmp"
	"errors"
	"flag"
	"fmt"
	"time"

	"plimsoll/lab/frame"
)

// settings say what is done.
type settings struct {
	frame.Settings
	containers int
	span       time.Duration
	kill       time.Duration // between two kills
	share      float64       // of the span, for the last life
	last       time.Duration // the life that is not killed
	churn      float64       // actions of the owner in a second
	flap       time.Duration // from one failure of the API server to the next
	every      time.Duration // between two samples
	seed       uint64
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{span: time.Hour, containers: 250, kill: time.Minute, share: 0.25, churn: 5, flap: 47 * time.Second,
		every: 2 * time.Second, seed: 1}
}

func main() { frame.Main("soak", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.span, "seconds", "seconds in all, without start and end")
	set.IntVar(&s.containers, "containers", s.containers,
		"containers, two in a pod; one in ten does jobs that its limit is too small for")
	set.DurationVar(&s.kill, "kill", s.kill, "from the start of an agent to its kill -9")
	set.Float64Var(&s.share, "last", s.share,
		"share of the time for the last agent, which is not killed: a leak shows only after an agent's first minutes")
	set.Float64Var(&s.churn, "churn", s.churn,
		"jobs, resizes, restarts of containers and replacements of pods in a second")
	set.DurationVar(&s.flap, "flap", s.flap,
		"from one failure of the API server to the next; each lasts a fourth of that")
	set.DurationVar(&s.every, "every", s.every, "between two samples")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the churn")
}

// Check implements frame.Experiment. An agent needs a second until it manages its groups.
func (s *settings) Check() (err error) {
	s.last = time.Duration(s.share * float64(s.span))
	switch {
	case s.kill < 2*time.Second:
		err = fmt.Errorf("-kill %v: must be 2s or more: the agent needs a second until it manages its groups", s.kill)
	case s.churn <= 0 || s.churn > 200:
		err = fmt.Errorf("-churn %v: must be above 0, and 200 at most", s.churn)
	case s.flap < 3*time.Second:
		err = errors.New("-flap: must be 3s or more")
	}
	return cmp.Or(err, frame.Within("-seconds", s.span, 10*time.Second, 24*time.Hour),
		frame.Within("-containers", s.containers, 10, 2000),
		frame.Within("-last", s.share, 0.1, 0.9), frame.Within("-every", s.every, 100*time.Millisecond, s.kill/4))
}
