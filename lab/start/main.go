// Command start measures how long a real JVM takes until it is ready: with a limit alone, with the agent beside it, and
// without a limit.
//
// Approach: the same program (Ready.java, which is compiled, loads classes and builds tables) is started in a new group
// again and again. The modes take turns in rounds, so that a machine that changes does so for all of them. Each mode
// is judged by its median. Where there is no limit the JVM is told what it sees under one: one processor, and the
// garbage collector that goes with it.
//
// The kernel tells a probe of the lab's own how often and for how long a group stood still. That figure holds on a busy
// machine too, where seconds say little.
//
// Known limits: what the agent and its programs in the kernel cost is part of its mode's time.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
	"plimsoll/lab/frame"
)

//go:embed Ready.java
var program []byte

// seed is that of the modes' order in each round.
const seed = 1

// The modes.
const (
	none      = "none"      // its limit, and nothing else
	auto      = "auto"      // its limit, and the agent
	unlimited = "unlimited" // no limit
)

var modes = [...]string{none, auto, unlimited}

// settings say what is measured.
type settings struct {
	frame.Settings
	limit     float64 // CPUs
	percent   int64   // startupBurstPercent
	threshold int64   // sharePoolThresholdPercent
	rounds    int
	pod       bool
	flags     string // of the JVM
	java      string
}

func main() {
	frame.Main("start", &settings{limit: 0.5, percent: 1000, threshold: 100, rounds: 7})
}

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	set.Float64Var(&s.limit, "limit", s.limit, "CPUs that the JVM is limited to")
	set.Int64Var(&s.percent, "percent", s.percent, "startupBurstPercent: the cap of a period, in percent of the limit")
	set.Int64Var(&s.threshold, "threshold", s.threshold,
		"sharePoolThresholdPercent: up to where the node's use may come")
	set.IntVar(&s.rounds, "rounds", s.rounds, "starts in each mode")
	set.BoolVar(&s.pod, "pod", false, "a pod with the same limit around each JVM, as Kubernetes has it")
	set.StringVar(&s.flags, "java", "",
		"more flags of the JVM, such as -XX:TieredStopAtLevel=1, with which its start uses fewer CPUs at once")
}

// Check implements frame.Experiment. With a limit above 1 a JVM sees more than one processor.
func (s *settings) Check() error {
	return cmp.Or(frame.Within("-limit", s.limit, 0.1, 1), frame.Within("-rounds", s.rounds, 1, 100),
		frame.Within("-percent", s.percent, 100, 10000), frame.Within("-threshold", s.threshold, 1, 100))
}

// bench is a measurement under way.
type bench struct {
	*frame.Bench
	*settings
	agent  *experiment.Agent
	probe  *probe.Probe
	host   *sysfs.Host
	source string
	line   float64 // CPUs up to which the node's use may come
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	s.java = frame.Must(experiment.Program("java"))
	b := &bench{Bench: f, settings: s, host: sysfs.NewHost("/"), source: filepath.Join(f.Dir("start"), "Ready.java")}
	frame.Check(os.WriteFile(b.source, program, 0o600))
	b.probe = frame.Must(experiment.WatchThrottles(probe.Options{}))
	f.Undo(b.probe.Close)
	b.startAgent(ctx)
	once := func(round int, mode string) start { return b.start(ctx, mode, round) }
	starts := frame.Turns(f, s.rounds, seed, modes[:], once, func(x start) string {
		return fmt.Sprintf("%-9s ready after %.2f s, throttled for %.2f s, others used %.2f CPUs; %s", x.Mode,
			x.Ready.Seconds(), x.Still.Seconds(), x.Others, x.Why)
	})
	return &result{Limit: s.limit, Percent: s.percent, Threshold: s.threshold, Flags: s.flags, Line: b.line,
		Cgroup: f.Tree().Version().String(), Starts: starts}, nil
}

// startAgent starts an agent that manages the groups of mode auto alone.
func (b *bench) startAgent(ctx context.Context) {
	b.agent = b.Agent(experiment.Setup{})
	text := fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: %d}\noverrides:\n  - {cgroup: %q, "+
		"policy: auto, startupBurstPercent: %d}\n", b.threshold, b.Base()+"/"+auto+"-*", b.percent)
	if b.pod {
		text += fmt.Sprintf("  - {cgroup: %q, policy: auto, startupBurstPercent: %d}\n",
			b.Base()+"/"+auto+"-*/"+container, b.percent)
	}
	frame.Check(b.agent.Follow(ctx, text, func() error {
		s, err := b.agent.Status(ctx)
		if n := s.Node; err == nil && n.Threshold != n.Capacity*float64(b.threshold)/100 {
			err = fmt.Errorf("the threshold is %.2f of %.2f CPUs", n.Threshold, n.Capacity)
		}
		b.line = s.Node.Threshold
		return err
	}))
}

// begun is when a JVM first wrote a line, and all its lines.
type begun struct {
	at   time.Time
	text bytes.Buffer
}

func (o *begun) Write(p []byte) (int, error) {
	if o.at.IsZero() {
		o.at = time.Now()
	}
	return o.text.Write(p)
}

// container is the name of a group in a pod.
const container = "container"

// group makes a new one for a start, limited but in mode unlimited, and in a pod of the same limit if that is asked
// for. The kernel is to tell of its throttles, and its pod's.
func (b *bench) group(mode string, round int) (group string, inodes []uint64) {
	names, add := []string{fmt.Sprintf("%s-%d", mode, round)}, b.Add
	if b.pod {
		names, add = append(names, names[0]+"/"+container), b.AddParent
	}
	for _, name := range names {
		group = frame.Must(add(name))
		add = b.Add // for the container
		inodes = append(inodes, frame.Must(b.Tree().Inode(group)))
		if mode != unlimited {
			frame.Check(b.Limit(group, experiment.Limited(b.limit)))
		}
	}
	frame.Check(b.probe.Watch(inodes))
	return group, inodes
}

// start runs the program to its end in a new group of a mode.
func (b *bench) start(ctx context.Context, mode string, round int) start {
	group, inodes := b.group(mode, round)
	args := append(strings.Fields(b.flags), "-Xmx256m", b.source)
	if mode == unlimited {
		args = append([]string{"-XX:ActiveProcessorCount=1", "-XX:+UseSerialGC"}, args...)
	}
	var out begun
	cmd := experiment.Gated(b.java, args...)
	cmd.Stdout = &out
	busy, from := frame.Must(b.host.Busy()), time.Now()
	child := frame.Must(experiment.Launch(cmd, func(pid int) error { return b.Enter(group, pid) }))
	frame.Check(errors.Join(child.Wait(ctx), child.Stop(0)))
	took := time.Since(from)
	x := start{Mode: mode, Ready: out.at.Sub(from), Saw: strings.TrimSpace(out.text.String()),
		Used: frame.Must(b.Used(group))}
	x.Others = max(0, (frame.Must(b.host.Busy())-busy-x.Used).Seconds()/took.Seconds())
	for _, inode := range inodes { // where a pod and its container are throttled at once, both count
		t, _ := b.probe.Totals(inode) // it is watched
		x.Throttles += t.Begins
		x.Still += t.Wall
	}
	if mode == auto {
		c, err := report.Find(frame.Must(b.agent.Status(ctx)).Containers, group)
		if err != nil {
			frame.Check(fmt.Errorf("the agent does not know the group: %w", err))
		}
		x.Refills, x.AtCap, x.AtCapTime, x.Raises, x.Why =
			c.Totals.Refills, c.Totals.AtCap, c.Totals.AtCapWall, c.Totals.Raises, c.Why
	}
	return x
}

// The aims of the project: the time until a JVM is ready, against unlimited, and the part of it for which it may be
// throttled.
const (
	aimReady = 1.10
	aimStill = 0.10
)

// disturbed is from how many CPUs of others on that seconds say little.
const disturbed = 0.2

// result is what was measured.
type result struct {
	Limit     float64 `json:"limit_cpus"`
	Percent   int64   `json:"cap_percent"`
	Threshold int64   `json:"threshold_percent"`
	Flags     string  `json:"java"`      // more of the JVM's
	Line      float64 `json:"line_cpus"` // up to which the node's use may come
	Cgroup    string  `json:"cgroup"`
	Starts    []start `json:"starts"`
}

// start is one start of a JVM.
type start struct {
	Mode      string        `json:"mode"`
	Ready     time.Duration `json:"ready_ns"` // from its start until it said that it is ready
	Saw       string        `json:"saw"`      // of its limit
	Used      time.Duration `json:"used_ns"`  // CPU time
	Throttles int64         `json:"throttles"`
	Still     time.Duration `json:"throttled_ns"` // wall time for which it was throttled, by throttle events
	Others    float64       `json:"others_cpus"`
	Refills   int64         `json:"refills"` // by the agent, like all that follows
	AtCap     int64         `json:"at_cap"`
	AtCapTime time.Duration `json:"at_cap_ns"`
	Raises    int64         `json:"raises"`
	Why       string        `json:"why"`
}

// of are the starts of a mode.
func (r *result) of(mode string) []start {
	return frame.Of(r.Starts, mode, func(x start) string { return x.Mode })
}

// median is that of a figure over the starts of a mode.
func (r *result) median(mode string, of func(start) float64) float64 {
	return experiment.MedianOf(r.of(mode), of)
}

func ready(x start) float64 { return x.Ready.Seconds() }

func still(x start) float64 { return x.Still.Seconds() / x.Ready.Seconds() }

// Aims compare the result with the aims.
func (r *result) Aims() []experiment.Figure {
	best := r.median(unlimited, ready)
	over := func(mode string, atMost float64) experiment.Figure {
		return experiment.Figure{Name: "time until ready, " + mode + " / unlimited",
			Value: r.median(mode, ready) / best, AtMost: atMost, Measured: best > 0}
	}
	return []experiment.Figure{over(none, 0), over(auto, aimReady),
		{Name: "part of that time for which it was throttled, none", Value: r.median(none, still), Measured: best > 0},
		{Name: "part of that time for which it was throttled, auto", Value: r.median(auto, still), AtMost: aimStill,
			Measured: best > 0}}
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "A JVM with a limit of %g CPUs%s. In its start it may use %d %% of that as long as the node "+
		"uses less than %.2f CPUs (%d %%). Cgroup %s.\n\n", r.Limit, r.with(), r.Percent, r.Line, r.Threshold, r.Cgroup)
	r.table(page)
	frame.WriteAims(page, r.conclude(), r.Aims())
}

// with names more flags of the JVM.
func (r *result) with() string {
	if r.Flags == "" {
		return ""
	}
	return ", " + r.Flags
}

func (r *result) table(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("mode|ready|CPU time|throttles|throttled|at the cap|refills|others")
	for _, mode := range modes {
		m := frame.Medians(r.of(mode))
		t.Row("%s|%.2f s|%.2f s|%d|%.2f s|%.2f s|%d|%.2f CPUs", mode, m.Ready.Seconds(), m.Used.Seconds(), m.Throttles,
			m.Still.Seconds(), m.AtCapTime.Seconds(), m.Refills, m.Others)
	}
	t.Write(page)
	fmt.Fprintln(page, "Medians. Throttled: wall time from a throttle's begin until a task of the group ran again, "+
		"by throttle events. At the cap: that of throttles\nthat the agent may not end. Others: CPUs that the rest "+
		"of the machine used meanwhile.")
}

// conclude says what has to be known beside the figures.
func (r *result) conclude() []string {
	say := []string{r.sight(),
		fmt.Sprintf("Unlimited it used %.2f CPUs on average; the agent hands out nothing more when the node uses %.2f.",
			r.median(unlimited, func(x start) float64 { return x.Used.Seconds() / x.Ready.Seconds() }), r.Line)}
	if others := r.median(auto, func(x start) float64 { return x.Others }); others > disturbed {
		say = append(say, fmt.Sprintf("Careful: others used %.2f CPUs meanwhile: try again on a quiet machine.",
			others))
	}
	return say
}

// sight says whether a JVM beside the agent saw what one without it sees of its limit.
func (r *result) sight() string {
	var seen []string
	for _, x := range r.Starts {
		if x.Mode != unlimited && !slices.Contains(seen, x.Saw) {
			seen = append(seen, x.Saw)
		}
		if x.Raises > 0 {
			return fmt.Sprintf("FAILED: the quota was raised %d times in a start", x.Raises)
		}
	}
	if len(seen) == 1 {
		return "With and without the agent it saw the same of its limit: " + seen[0] + "."
	}
	return fmt.Sprintf("FAILED: with and without the agent it saw different limits: %d of them", len(seen))
}
