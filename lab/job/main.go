// Command job measures how long a short job takes under a limit, under each policy: one thread that needs so much CPU
// time and ends, as a step of a pipeline or a health check does.
//
// Approach: a shell counts to a number that is calibrated without a limit. Each run has a group of its own kind: all
// modes take turns in rounds in the same group, which is idle between two runs for as long as its limit pays for the
// job. A mode's figure is the median of its rounds, against that without a limit.
//
// Known limits: the time to start the shell is part of each run, a millisecond or two.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

const (
	auto    = experiment.Mode(strategy.Auto)
	aimAuto = 1.2     // of the time without a limit
	first   = 100_000 // steps that calibrate the work
)

// modes are all that differ for a job that is alone.
func modes() []experiment.Mode {
	return slices.DeleteFunc(experiment.Modes(), func(m experiment.Mode) bool { return m == experiment.RequestsOnly })
}

type settings struct {
	frame.Settings
	limit  float64       // CPUs
	work   time.Duration // CPU time of the job
	rounds int
	seed   uint64
}

func usual() *settings {
	return &settings{limit: 0.5, work: 200 * time.Millisecond, rounds: 10, seed: 1}
}

func main() { frame.Main("job", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	set.Float64Var(&s.limit, "limit", s.limit, "CPUs that the job is limited to")
	set.DurationVar(&s.work, "work", s.work, "CPU time of the job")
	set.IntVar(&s.rounds, "rounds", s.rounds, "runs in each mode")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the modes' order")
}

// Check implements frame.Experiment. A job of one thread uses no more than a CPU.
func (s *settings) Check() error {
	return cmp.Or(frame.Within("-limit", s.limit, 0.05, 0.9), frame.Within("-rounds", s.rounds, 1, 1000),
		frame.Within("-work", s.work, 20*time.Millisecond, 5*time.Second))
}

// run is what was measured once.
type run struct {
	Mode experiment.Mode `json:"mode"`
	Took time.Duration   `json:"took_ns"`
	Used time.Duration   `json:"used_ns"` // CPU time
}

// result is what was measured.
type result struct {
	frame.Machine
	Limit  float64 `json:"limit_cpus"`
	Work   float64 `json:"work_ms"`
	Rounds int     `json:"rounds"`
	Runs   []run   `json:"runs"`
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (*result, error) {
	group := frame.Must(b.Add("job"))
	b.Sleeper(group) // the agent writes nothing before a task is in the group
	once := do(ctx, b, group, first)
	steps, limit := int(float64(first)*s.work.Seconds()/once.Used.Seconds()), experiment.Limited(s.limit)
	frame.Check(b.Limit(group, limit))
	a := b.Agent(experiment.Setup{})
	runs := frame.Turns(b, s.rounds, s.seed, modes(), func(_ int, mode experiment.Mode) (x run) {
		frame.Check(b.Under(a, mode, group, limit, func() error {
			frame.Check(experiment.Pause(ctx, time.Duration(float64(s.work)/s.limit)))
			x = do(ctx, b, group, steps)
			return nil
		}))
		x.Mode = mode
		return x
	}, func(x run) string { return fmt.Sprintf("%-18s %4.0f ms", x.Mode, experiment.Milliseconds(x.Took)) })
	return &result{Machine: b.Machine(), Limit: s.limit, Rounds: s.rounds,
		Work: experiment.Milliseconds(s.work), Runs: runs}, nil
}

// do runs the job once.
func do(ctx context.Context, b *frame.Bench, group string, steps int) (x run) {
	count := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); done", steps)
	b.Scope(ctx, func(b *frame.Bench) {
		x.Used = frame.Must(b.Spent(group, func() error {
			begin := time.Now()
			job := b.Launch(experiment.Gated("/bin/sh", "-c", count), group,
				func(int) error { begin = time.Now(); return nil })
			err := job.Wait(ctx)
			x.Took = time.Since(begin)
			return err
		}))
	})
	return x
}

// of are the medians of a mode, in milliseconds.
func (r *result) of(mode experiment.Mode) (took, used float64) {
	m := frame.Medians(frame.Of(r.Runs, mode, func(x run) experiment.Mode { return x.Mode }))
	return experiment.Milliseconds(m.Took), experiment.Milliseconds(m.Used)
}

// Aims compare the result with the aims.
func (r *result) Aims() []experiment.Figure {
	best, _ := r.of(experiment.Unlimited)
	took, _ := r.of(auto)
	return []experiment.Figure{{Name: "time of the job, auto / unlimited", Value: experiment.Ratio(took, best),
		AtMost: aimAuto, Measured: best > 0 && took > 0}}
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "A job of %.0f ms of CPU time with a limit of %g CPUs; medians of %d rounds, kernel %s, cgroup "+
		"%s.\n", r.Work, r.Limit, r.Rounds, r.Kernel, r.Cgroup)
	var t experiment.Table
	t.Row("mode|took|against unlimited|CPU time")
	best, _ := r.of(experiment.Unlimited)
	for _, mode := range modes() {
		took, used := r.of(mode)
		t.Row("%s|%.0f ms|x%.2f|%.0f ms", mode, took, experiment.Ratio(took, best), used)
	}
	t.Write(page)
	frame.WriteAims(page, nil, r.Aims())
}
