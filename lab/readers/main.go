// Command readers measures what many readers of its status at once cost the agent: the real binary looks after 1,000
// pods with a container each, which are idle, and 60 readers ask for the status over TCP at the same time, some rounds
// long. It prints the agent's resident memory before and its peak beside them, and the ratio.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/lab/experiment"
)

// aim is how many times larger the agent may get.
const aim = 1.5

// settings say what is measured.
type settings struct {
	Pods       int `json:"pods"`
	Readers    int `json:"readers"`
	Rounds     int `json:"rounds"`
	warmUp     time.Duration
	cgroupRoot string
	plimsoll   string
	json       bool
}

// result is what was measured.
type result struct {
	settings
	Answers map[string]int `json:"answers"` // by HTTP status
	Bytes   int64          `json:"bytes"`   // of the longest answer
	Slowest time.Duration  `json:"slowest_ns"`
	Before  int64          `json:"rss_before_bytes"`
	Peak    int64          `json:"rss_peak_bytes"`
	Ratio   float64        `json:"ratio"`
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	met := "met"
	if r.Ratio > aim {
		met = "missed"
	}
	fmt.Fprintf(page, "%d pods, %d readers of the status at once, %d rounds; answers of %.1f MB\n",
		r.Pods, r.Readers, r.Rounds, float64(r.Bytes)/1e6)
	for _, code := range slices.Sorted(maps.Keys(r.Answers)) {
		fmt.Fprintf(page, "  %-24s %d\n", code, r.Answers[code])
	}
	fmt.Fprintf(page, "  slowest answer           %v\n", r.Slowest.Round(time.Millisecond))
	fmt.Fprintf(page, "  agent memory             %.1f MiB before, %.1f MiB at the peak\n",
		float64(r.Before)/(1<<20), float64(r.Peak)/(1<<20))
	fmt.Fprintf(page, "  ratio                    %.2f, aim: at most %g, %s\n", r.Ratio, aim, met)
}

func main() {
	os.Exit(experiment.Fail("readers", run()))
}

func run() error {
	s := settings{}
	set := flag.NewFlagSet("readers", flag.ExitOnError)
	set.IntVar(&s.Pods, "pods", 1000, "pods, with a container each")
	set.IntVar(&s.Readers, "readers", 60, "readers at once")
	set.IntVar(&s.Rounds, "rounds", 5, "times that they read, one after the other")
	seconds := set.Float64("seconds", 20, "seconds until the agent has settled")
	experiment.AgentFlags(set, &s.cgroupRoot, &s.plimsoll)
	set.BoolVar(&s.json, "json", false, "print the result as JSON")
	if err := set.Parse(os.Args[1:]); err != nil {
		return err
	}
	s.warmUp = experiment.Seconds(*seconds)
	if s.Pods < 1 || s.Readers < 1 || s.Rounds < 1 || s.warmUp <= 0 {
		return errors.New("-pods, -readers, -rounds and -seconds: must be above 0")
	}
	var err error
	if s.plimsoll, err = experiment.FindBinary(s.plimsoll); err != nil {
		return err
	}
	ctx, stop := experiment.UntilAsked()
	defer stop()
	r, err := measure(ctx, s)
	if err != nil {
		return err
	}
	return experiment.Tell(r, s.json)
}

// measure makes the pods, starts the agent, and cleans up, however it ends.
func measure(ctx context.Context, s settings) (r *result, err error) {
	groups, err := experiment.NewGroups(s.cgroupRoot, "readers")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, groups.Close()) }()
	experiment.Say("making %d pods", s.Pods)
	for i := range s.Pods {
		if err := addPod(ctx, groups, fmt.Sprintf("pod%d", i)); err != nil {
			return nil, err
		}
	}
	address, err := experiment.FreeAddress()
	if err != nil {
		return nil, err
	}
	setup := experiment.Setup{Binary: s.plimsoll, Root: s.cgroupRoot, Flags: []string{"--listen", address}}
	a, err := experiment.StartAgent(setup, groups)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	base := groups.Base()
	err = a.Configure(fmt.Sprintf("strategy: {policy: none}\noverrides:\n"+
		"  - {cgroup: %q, policy: auto}\n  - {cgroup: %q, policy: auto}\n", base+"/pod*", base+"/pod*/c*"))
	if err == nil {
		err = a.Await(ctx, func() error { return known(ctx, a, 2*s.Pods) })
	}
	if err == nil {
		experiment.Say("%v until the agent has settled", s.warmUp)
		err = experiment.Pause(ctx, s.warmUp)
	}
	if err != nil {
		return nil, err
	}
	r = &result{settings: s, Answers: map[string]int{}}
	return r, r.watch(ctx, a.Child(), "http://"+address+"/api/v1/status")
}

// addPod makes a pod with a container and their limits.
func addPod(ctx context.Context, groups *experiment.Groups, pod string) error {
	if _, err := groups.AddParent(pod); err != nil {
		return err
	}
	if _, err := groups.Add(pod + "/c0"); err != nil {
		return err
	}
	for _, name := range []string{pod + "/c0", pod} {
		if err := groups.Limit(groups.Base()+"/"+name, cpu.Bandwidth{Quota: 50 * time.Millisecond}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// known is an error as long as the agent does not look after all groups.
func known(ctx context.Context, a *experiment.Agent, want int) error {
	s, err := a.Status(ctx)
	if err == nil && len(s.Containers) != want {
		err = fmt.Errorf("it knows %d of %d groups", len(s.Containers), want)
	}
	return err
}

// watch has the readers read, and sees how large the agent gets.
func (r *result) watch(ctx context.Context, p *experiment.Child, url string) error {
	var err error
	if r.Before, err = p.Memory("VmRSS:"); err != nil {
		return err
	}
	if err := p.ForgetPeak(); err != nil {
		return err
	}
	for range r.Rounds {
		if err := r.read(ctx, url); err != nil {
			return err
		}
	}
	if r.Peak, err = p.Memory("VmHWM:"); err != nil {
		return err
	}
	r.Ratio = float64(r.Peak) / float64(r.Before)
	if r.Answers["200 OK"] == 0 {
		return fmt.Errorf("nobody got an answer: %s", strings.Join(slices.Sorted(maps.Keys(r.Answers)), ", "))
	}
	return nil
}
