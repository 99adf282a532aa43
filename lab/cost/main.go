// Command cost measures what the agent costs: the real binary manages 110 pods with 250 containers, which are idle in
// the first scenario, and a tenth of which are throttled all the time in the second, once with the kernel telling of
// throttles and once polling for them. Beside it, in the same seconds, a process runs that does nothing but read files
// of the same groups as often as the agent does. Then it measures what the write costs that ends a throttle, among few
// and among many groups, and what it costs to size the bursts by a load line. At last it measures an agent beside
// larger numbers of idle pods.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/lab/frame"
)

// settings say what is measured.
type settings struct {
	frame.Settings
	size    size
	pods    string
	idle    []int         // pods of one idle container, each number by itself
	span    time.Duration // of each scenario
	warmUp  time.Duration
	idleFor time.Duration // of the agent beside idle pods
	polls   bool          // measure the agent that polls, too
	others  int           // groups that are made besides, when refills are measured
	bare    string        // run as the bare loop on the files that this file lists
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{Settings: frame.Settings{Groups: frame.NoGroups}, size: size{Pods: 110, Containers: 250}, pods: "110,1000,3000",
		span: time.Minute, warmUp: 70 * time.Second, idleFor: 40 * time.Second, others: manyGroups}
}

func main() { frame.Main("cost", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.span, "seconds", "seconds of each scenario, after the warm-up; the agent reads all again once a minute")
	set.StringVar(&s.pods, "pods", s.pods, "pods; after a comma, numbers of idle pods of one container to measure besides (0 for the first: these alone)")
	set.IntVar(&s.size.Containers, "containers", s.size.Containers, "containers in all pods of the first number; a tenth of them is throttled in the second scenario")
	set.BoolVar(&s.polls, "polls", true, "measure the agent that polls for throttles, too")
	set.StringVar(&s.bare, "bare", "", "be the bare loop: read the files that are listed in this file until standard input ends")
}

// Check implements frame.Experiment.
func (s *settings) Check() (err error) {
	if err := s.counts(s.pods); err != nil {
		return err
	}
	if n := s.size.Pods; n > 0 && s.size.Containers < n {
		err = fmt.Errorf("%d containers in %d pods: each pod needs a container; hint: -containers %d", s.size.Containers, n, n)
	}
	return cmp.Or(err, frame.Within("-seconds", s.span, time.Second, 10*time.Minute))
}

// Part is the bare loop, where this process is one.
func (s *settings) Part() func() error {
	if s.bare == "" {
		return nil
	}
	return func() error { return readAgainAndAgain(context.Background(), s.bare) }
}

// mostPods is the most for which one machine can run a process each: 20,000 files, two for each process.
const mostPods = 5000

// counts reads the numbers of pods.
func (s *settings) counts(list string) error {
	var numbers []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 || n > mostPods {
			return fmt.Errorf("-pods %q: %q is not a number between 0 and %d; hint: -pods 110,1000,3000", list, text, mostPods)
		}
		numbers = append(numbers, n)
	}
	s.size.Pods, s.idle = numbers[0], numbers[1:]
	if slices.Contains(s.idle, 0) || s.size.Pods == 0 && len(s.idle) == 0 {
		return fmt.Errorf("-pods %q: at least one pod is needed; hint: -pods 110,1000,3000", list)
	}
	return nil
}
