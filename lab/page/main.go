// Command page measures what an open page costs: the real binary looks after 1,000 containers, 250 of which do a job
// that throttles them every few seconds, for a while without a page, and for as long with one. It prints the CPU time
// of the agent and of the process that serves, and the memory of each.
//
// Known limits: the page is a client that reads the stream and draws nothing.
// What drawing costs the browser TestSmooth measures.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

// aim is how much of a CPU a page may cost, in the agent and in what serves together.
const aim = 0.02

type settings struct {
	frame.Settings
	job          frame.Job
	idle, active int
	warmUp, span time.Duration
}

// costs are those of one window, as parts of a CPU, and in bytes at its end.
type costs struct {
	Agent, Serve             float64
	AgentMemory, ServeMemory int64
}

type result struct {
	Idle    int           `json:"idle"`
	Active  int           `json:"active"`
	Span    time.Duration `json:"span_ns"`
	Without costs         `json:"without"`
	With    costs         `json:"with"`
	Bytes   int64         `json:"bytes_a_second"` // of the stream
}

func main() {
	frame.Main("page", &settings{idle: 750, active: 250, warmUp: 20 * time.Second, span: time.Minute,
		job: frame.Job{Every: 4 * time.Second, Quota: frame.LeastQuota}})
}

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	s.job.Flags(set)
	set.IntVar(&s.idle, "idle", s.idle, "containers that are idle")
	set.IntVar(&s.active, "active", s.active, "containers with jobs")
	frame.SecondsVar(set, &s.span, "seconds", "seconds without a page, and with one")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	if s.idle < 0 || s.active < 1 || s.idle+s.active > 3000 {
		return errors.New("-idle and -active: 1 to 3,000 containers in all, one of them active")
	}
	return errors.Join(s.job.Check(), frame.Within("-seconds", s.span, time.Second, time.Hour))
}

// Part is a worker, where this process is one.
func (s *settings) Part() func() error { return s.job.Part() }

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (*result, error) {
	r := &result{Idle: s.idle, Active: s.active, Span: s.span}
	jobs := frame.NewJobs(b.Groups, s.active, s.job.Quota)
	b.Undo(jobs.Stop)
	paths := jobs.Paths
	for i := range s.idle {
		group := frame.Must(b.Add(fmt.Sprint("idle", i)))
		frame.Check(errors.Join(b.Limit(group, cpu.Bandwidth{Quota: s.job.Quota}), ctx.Err()))
		b.Sleeper(group)
		paths = append(paths, group)
	}
	begin := jobs.Prepare(s.job)
	a, address := b.Listening()
	b.Say("%d containers; %v until the agent has settled", len(paths), s.warmUp)
	frame.Check(errors.Join(a.Apply(strategy.Auto, paths, jobs.Limit), begin(), experiment.Pause(ctx, s.warmUp)))
	r.Without = s.window(ctx, a)
	read, closed := make(chan int64, 1), make(chan error, 1)
	open, hide := context.WithCancel(ctx)
	defer hide()
	go func() {
		n, err := stream(open, "http://"+address+"/api/v1/live")
		read <- n
		closed <- err
	}()
	b.Say("with a page")
	r.With = s.window(ctx, a)
	hide()
	r.Bytes = int64(float64(<-read) / s.span.Seconds())
	return r, errors.Join(<-closed, jobs.Working())
}

// window measures both processes for a time.
func (s *settings) window(ctx context.Context, a *experiment.Agent) (c costs) {
	agent := a.Child().PID()
	serve := frame.Must(child(agent))
	used := func() [2]time.Duration {
		return [2]time.Duration{frame.Must(experiment.CPUTime(agent)), frame.Must(experiment.CPUTime(serve))}
	}
	from, to := frame.Around(used, func() { frame.Check(experiment.Pause(ctx, s.span)) })
	c.Agent, c.Serve = (to[0]-from[0]).Seconds()/s.span.Seconds(), (to[1]-from[1]).Seconds()/s.span.Seconds()
	c.AgentMemory, c.ServeMemory = frame.Must(experiment.Memory(agent, "VmRSS:")), frame.Must(experiment.Memory(serve,
		"VmRSS:"))
	return c
}

// child is the only child of a process, whichever of its threads has started it.
func child(pid int) (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var all []byte
	for _, list := range lists {
		data, fault := os.ReadFile(list)
		all, err = append(all, data...), errors.Join(err, fault)
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(all)))
}

// stream reads as a page does, until it is closed: it opens the next stream where the server ends one.
func stream(ctx context.Context, url string) (n int64, err error) {
	for err == nil && ctx.Err() == nil {
		var more int64
		more, err = read(ctx, url)
		n += more
	}
	if ctx.Err() != nil {
		return n, nil // it was closed here
	}
	return n, err
}

// read reads a stream until the server ends it.
func read(ctx context.Context, url string) (n int64, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, res.Status)
	}
	return io.Copy(io.Discard, res.Body)
}

// Aims compare the result with the aims.
func (r *result) Aims() []experiment.Figure {
	more := r.With.Agent + r.With.Serve - r.Without.Agent - r.Without.Serve
	return []experiment.Figure{{Name: "what the page costs, of a CPU", Value: more, AtMost: aim, Measured: true}}
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "%d containers, %d of which do a job now and then, %v each:\n", r.Idle+r.Active, r.Active, r.Span)
	for _, x := range []struct {
		name string
		costs
	}{{"no page", r.Without}, {"a page open", r.With}} {
		fmt.Fprintf(page, "  %-12s agent %.2f %% of a CPU, %.1f MiB; serve %.2f %%, %.1f MiB\n", x.name, 100*x.Agent,
			float64(x.AgentMemory)/(1<<20), 100*x.Serve, float64(x.ServeMemory)/(1<<20))
	}
	fmt.Fprintf(page, "  the stream has %.1f kB a second\n", float64(r.Bytes)/1000)
	frame.WriteAims(page, nil, r.Aims())
}
