// Command replay holds `plimsoll replay` against reality: what it foretells of a recorded time, beside what came of the
// same load.
//
// Approach: five kinds of load, each a script of jobs from a seed. Each runs twice without a limit, then under a limit
// with the policy none, and with auto, with the flight recorder on. The record of none is replayed with auto. Time lost
// is that of the record of the real run; delays are the load's own: how much later each 5 ms of its CPU time were done
// than in the first run without a limit. What else runs on the machine is in them: the delay of the second run says how
// much. With -vm it is next to nothing: the time of that machine is counted in instructions, so that it stands still
// while the host does other work.
//
// Known limits: a load does not wait for answers before it asks again.
// In a virtual machine one thread works (see guestThreads).
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

const (
	part  = 0.15 // of what was measured: how far a figure may be off
	more  = 5 * time.Millisecond
	start = 12 * time.Second // the agent and the recorder have seen the group before the load begins
	ready = time.Second      // the program of the load has started: what that uses is not compared
	after = time.Second      // the record shows that the load has ended

	hostThreads = 2
	hostLimit   = 0.5
)

type settings struct {
	frame.Settings
	length    time.Duration
	limit     float64
	seed      uint64
	threads   int    // of a load
	kind, out string // of a load: this process is one
	vm        string // a kernel: in a virtual machine
	only      string // the one kind of load that runs; "": all
}

func main() { frame.Main("replay", &settings{length: time.Minute, seed: 1}) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.length, "seconds", "length of each run")
	set.Float64Var(&s.limit, "limit", 0, fmt.Sprintf("CPUs that a load is limited to (0: %g; in a virtual machine %g)",
		hostLimit, guestLimit))
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the loads")
	set.IntVar(&s.threads, "threads", 0, fmt.Sprintf("threads of a load (0: %d; in a virtual machine %d)", hostThreads,
		guestThreads))
	set.StringVar(&s.vm, "vm", "",
		"measure in a virtual machine with this kernel (6.18), whose time is counted in instructions")
	set.StringVar(&s.only, "only", "", fmt.Sprintf("run only this load, one of %v", kinds()))
	set.StringVar(&s.kind, "load", "", "be this load")
	set.StringVar(&s.out, "out", "", "with -load: the file of what it measures")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	threads, limit := hostThreads, hostLimit
	if s.vm != "" {
		threads, limit = guestThreads, guestLimit
	}
	s.threads, s.limit = cmp.Or(s.threads, threads), cmp.Or(s.limit, limit)
	if !slices.Contains(kinds(), s.kinds()[0]) {
		return fmt.Errorf("-only %q: %v", s.only, kinds())
	}
	return errors.Join(frame.Within("-seconds", s.length, 5*time.Second, time.Hour),
		frame.Within("-limit", s.limit, 0.1, 1),
		frame.Within("-threads", s.threads, 1, 16))
}

// kinds are the kinds of load that run.
func (s *settings) kinds() []string {
	if s.only != "" {
		return []string{s.only}
	}
	return kinds()
}

// Part is a load.
func (s *settings) Part() func() error {
	if s.kind == "" {
		return nil
	}
	return s.work
}

const (
	// Emulated CPUs that are busy take turns of up to 50 ms, while the thread on the other one stands still and its CPU
	// time goes on. So one thread works there. The lower limit has it want more than three times what it may use,
	// which is auto's cap.
	guestThreads = 1
	guestLimit   = 0.3
	// The agent is slower there than on a real CPU. It has CPUs beside those of the load, so that the load waits for
	// its limit and for nothing else.
	guestCPUs = 2
	// Of a slower CPU the writes that end throttles use the agent's budget up (internal/tenant).
	guestInstruction = 2 * time.Nanosecond
	bootPatience     = 4 * time.Minute
	guestSlow        = time.Minute // what a run takes there beside its load
)

// Guest is a virtual machine in which nothing else runs, where that was asked for:
// there two runs of one load are alike.
func (s *settings) Guest() (vm *frame.VM, script string) {
	if s.vm == "" {
		return nil, ""
	}
	others := (1<<guestCPUs - 1) << s.threads // the CPUs, as a mask
	agent := fmt.Sprintf("printf '#!/bin/sh\\nexec taskset %x %%s \"$@\"\\n' $PWD/plimsoll >agent; chmod +x agent\n",
		others)
	runs := 4 * time.Duration(len(s.kinds()))
	return &frame.VM{Kernel: s.vm, Cgroup: "v2", CPUs: s.threads + guestCPUs, Instruction: guestInstruction,
			Span: bootPatience + runs*(start+s.length+guestSlow)},
		agent +
			fmt.Sprintf("./replay -plimsoll ./agent -seconds %g -limit %g -threads %d -seed %d -only %q -json=%v "+
				"-strict=%v",
				s.length.Seconds(), s.limit, s.threads, s.seed, s.only, s.JSON, s.Strict)
}

// row is what came of one kind of load.
type row struct {
	Kind      string         `json:"kind"`
	Was       time.Duration  `json:"was_lost_ns"`
	Foretold  report.Between `json:"foretold_lost_ns"`
	Real      time.Duration  `json:"real_lost_ns"`
	WasDelay  time.Duration  `json:"was_delay_p99_ns"` // measured by the load
	Read      report.Between `json:"read_delay_p99_ns"`
	Delay     report.Between `json:"foretold_delay_p99_ns"`
	RealDelay time.Duration  `json:"real_delay_p99_ns"`
	Noise     time.Duration  `json:"unlimited_delay_p99_ns"` // of another run without a limit
}

type result struct {
	frame.Machine
	Limit float64 `json:"limit_cpus"`
	Rows  []row   `json:"rows"`
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (*result, error) {
	r := &result{Machine: b.Machine(), Limit: s.limit}
	limited := experiment.Limited(s.limit)
	for _, kind := range s.kinds() {
		group, x := frame.Must(b.Add(kind)), row{Kind: kind}
		unlimited := cpu.Bandwidth{Quota: cpu.Unlimited}
		free, _ := s.run(ctx, b, kind, group, strategy.None, unlimited)
		again, _ := s.run(ctx, b, kind, group, strategy.None, unlimited)
		none, record := s.run(ctx, b, kind, group, strategy.None, limited)
		x.Was, x.Read, x.Foretold, x.Delay =
			record.Was.Lost.Likely, record.Was.Delay, record.Would.Lost, record.Would.Delay
		auto, record := s.run(ctx, b, kind, group, strategy.Auto, limited)
		x.Real, x.WasDelay, x.RealDelay, x.Noise = record.Was.Lost.Likely, p99(none, free), p99(auto, free), p99(again,
			free)
		b.Say("%s: %+v", kind, x)
		r.Rows = append(r.Rows, x)
	}
	return r, nil
}

// run runs a load once, and replays the record of it with auto.
func (s *settings) run(ctx context.Context, b *frame.Bench, kind, group string, p strategy.Policy,
	limit cpu.Bandwidth) (
	done []time.Duration, r report.Replayed) {
	dir := b.Dir("replay")
	var begin time.Time
	b.Scope(ctx, func(b *frame.Bench) { done, begin = s.once(ctx, b, kind, group, dir, p, limit) })
	if limit.Quota == cpu.Unlimited {
		return done, r
	}
	frame.In("plimsoll replay", func() {
		said := frame.Must(exec.CommandContext(ctx, b.Plimsoll, "replay", group, "--record-dir", dir,
			"--at", begin.Format(time.RFC3339Nano), "--for", s.length.String(), "--policy", string(strategy.Auto),
			"--threshold", "100", "--json").Output())
		var all report.Replay
		frame.Check(json.Unmarshal(said, &all))
		if len(all.Containers) != 1 {
			frame.Check(fmt.Errorf("%d containers", len(all.Containers)))
		}
		r = all.Containers[0]
	})
	return done, r
}

// once runs a load under an agent that records. Its record is whole once the agent has ended.
func (s *settings) once(ctx context.Context, b *frame.Bench, kind, group, dir string, p strategy.Policy,
	limit cpu.Bandwidth) (
	done []time.Duration, begin time.Time) {
	frame.Check(b.Limit(group, limit))
	b.Sleeper(group)
	a := b.Agent(experiment.Setup{Flags: []string{"--record-dir", dir}})
	frame.Check(a.Configure(fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100, startupSeconds: 0}\n"+
		"overrides:\n  - {cgroup: %q, policy: %s}\n", group, p)))
	frame.Check(experiment.Pause(ctx, start))
	out := filepath.Join(dir, "done.json")
	load := experiment.Again("-load", kind, "-threads", strconv.Itoa(s.threads), "-seed",
		strconv.FormatUint(s.seed, 10), "-seconds", fmt.Sprint(s.length.Seconds()), "-out", out)
	load.Env = append(os.Environ(), uninterrupted)
	job := b.Launch(load, group, func(int) error { return experiment.Pause(ctx, ready) })
	begin = time.Now()
	frame.Check(job.Wait(ctx))
	frame.Check(experiment.Pause(ctx, after))
	frame.Check(json.Unmarshal(frame.Must(os.ReadFile(out)), &done))
	return done, begin
}

// p99 is how much later one percent of the work was done than without a limit.
func p99(list, free []time.Duration) time.Duration {
	late := make([]time.Duration, min(len(list), len(free)))
	for i := range late {
		late[i] = max(0, list[i]-free[i])
	}
	slices.Sort(late)
	return late[max(0, int(math.Ceil(0.99*float64(len(late))))-1)]
}

// off is how far a figure is off, as a part of how far it may be.
func off(foretold, real time.Duration) float64 {
	return (foretold - real).Abs().Seconds() / (part*real.Seconds() + more.Seconds())
}

// Aims compare the result with the aims.
func (r *result) Aims() (list []experiment.Figure) {
	for _, x := range r.Rows {
		list = append(list, experiment.Figure{Name: x.Kind + ": time lost, off / (15 % + 5 ms)",
			Value: off(x.Foretold.Likely, x.Real), AtMost: 1, Measured: true},
			experiment.Figure{Name: x.Kind + ": p99 delay, off / (15 % + 5 ms)",
				Value: off(x.Delay.Likely, x.RealDelay), AtMost: 1, Measured: true})
	}
	return list
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "Loads with a limit of %g CPUs, recorded without Plimsoll, replayed with auto, and run with "+
		"auto; kernel %s, cgroup %s.\n", r.Limit, r.Kernel, r.Cgroup)
	rows := [][]string{{"load", "lost, none", "auto, foretold", "auto, real", "p99 delay, none", "read of the record",
		"auto, foretold", "auto, real", "unlimited again"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{x.Kind, ms(x.Was), x.Foretold.String(), beside(x.Foretold, x.Real), ms(x.WasDelay),
			x.Read.String(), x.Delay.String(), beside(x.Delay, x.RealDelay), ms(x.Noise)})
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	frame.WriteAims(page, nil, r.Aims())
}

// beside is what came, and whether it is within the bounds that were foretold.
func beside(foretold report.Between, real time.Duration) string {
	if real < foretold.Low || real > foretold.High {
		return ms(real) + ", outside"
	}
	return ms(real) + ", within"
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", experiment.Milliseconds(d)) }
