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
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// aim is how many times larger the agent may get.
const aim = 1.5

// settings say what is measured.
type settings struct {
	frame.Settings
	Pods    int `json:"pods"`
	Readers int `json:"readers"`
	Rounds  int `json:"rounds"`
	warmUp  time.Duration
}

// result is what was measured.
type result struct {
	*settings
	Answers map[string]int `json:"answers"` // by HTTP status
	Bytes   int64          `json:"bytes"`   // of the longest answer
	Slowest time.Duration  `json:"slowest_ns"`
	Before  int64          `json:"rss_before_bytes"`
	Peak    int64          `json:"rss_peak_bytes"`
	Ratio   float64        `json:"ratio"`
}

func main() {
	frame.Main("readers", &settings{Pods: 1000, Readers: 60, Rounds: 5, warmUp: 20 * time.Second})
}

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	set.IntVar(&s.Pods, "pods", s.Pods, "pods, with a container each")
	set.IntVar(&s.Readers, "readers", s.Readers, "readers at once")
	set.IntVar(&s.Rounds, "rounds", s.Rounds, "times that they read, one after the other")
	frame.SecondsVar(set, &s.warmUp, "seconds", "seconds until the agent has settled")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	if s.Pods < 1 || s.Readers < 1 || s.Rounds < 1 || s.warmUp <= 0 {
		return errors.New("-pods, -readers, -rounds and -seconds: must be above 0")
	}
	return nil
}

// Aims compare the result with the aims.
func (r *result) Aims() []experiment.Figure {
	return []experiment.Figure{{Name: "ratio", Value: r.Ratio, AtMost: aim, Measured: r.Before > 0}}
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

// Measure makes the pods, starts the agent, and has the readers read when it has settled.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (*result, error) {
	b.Say("making %d pods", s.Pods)
	for i := range s.Pods {
		addPod(ctx, b, fmt.Sprintf("pod%d", i))
	}
	a, address := b.Listening()
	base := b.Base()
	text := fmt.Sprintf("strategy: {policy: none}\noverrides:\n"+
		"  - {cgroup: %q, policy: auto}\n  - {cgroup: %q, policy: auto}\n", base+"/pod*", base+"/pod*/c*")
	frame.Check(a.Follow(ctx, text, func() error { return frame.Manages(ctx, a, 2*s.Pods) }))
	b.Say("%v until the agent has settled", s.warmUp)
	frame.Check(experiment.Pause(ctx, s.warmUp))
	r := &result{settings: s, Answers: map[string]int{}}
	r.watch(ctx, a.Child(), "http://"+address+"/api/v1/status")
	return r, nil
}

// addPod makes a pod with a container and their limits.
func addPod(ctx context.Context, b *frame.Bench, pod string) {
	outer, inner := frame.Must(b.AddParent(pod)), frame.Must(b.Add(pod+"/c0"))
	for _, group := range []string{inner, outer} {
		frame.Check(b.Limit(group, cpu.Bandwidth{Quota: 50 * time.Millisecond}))
	}
	frame.Check(context.Cause(ctx))
}

// watch has the readers read, and sees how large the agent gets.
func (r *result) watch(ctx context.Context, p *experiment.Child, url string) {
	r.Before = frame.Must(p.Memory("VmRSS:"))
	frame.Check(p.ForgetPeak())
	for range r.Rounds {
		frame.Check(r.read(ctx, url))
	}
	r.Peak = frame.Must(p.Memory("VmHWM:"))
	r.Ratio = float64(r.Peak) / float64(r.Before)
	if r.Answers["200 OK"] == 0 {
		frame.Check(fmt.Errorf("nobody got an answer: %s", strings.Join(slices.Sorted(maps.Keys(r.Answers)), ", ")))
	}
}

// read has all readers read once.
func (r *result) read(ctx context.Context, url string) error {
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for range r.Readers {
		all.Go(func() {
			begin := time.Now()
			code, size, err := get(ctx, url)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			r.Answers[code]++
			r.Bytes = max(r.Bytes, size)
			r.Slowest = max(r.Slowest, time.Since(begin))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// get reads as a program does that knows nothing of compression.
func get(ctx context.Context, url string) (code string, size int64, err error) {
	plain := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	client := http.Client{Transport: plain, Timeout: time.Minute}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	res, err := client.Do(q)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	size, err = io.Copy(io.Discard, res.Body)
	return res.Status, size, err
}
