// Command cost measures what the agent costs: the real binary manages 110 pods with 250 containers, which are idle in
// the first scenario, and a tenth of which are throttled all the time in the second, once with the kernel telling of
// throttles and once polling for them. Beside it, in the same seconds, a process runs that does nothing but read files
// of the same groups as often as the agent does. Then it measures what the write costs that ends a throttle, among few
// and among many groups. At last it measures an agent beside larger numbers of idle pods.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
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
	flags   []string      // of the agent
	bare    string        // run as the bare loop on the files that this file lists
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{Settings: frame.Settings{Groups: frame.NoGroups}, size: size{Pods: 110, Containers: 250},
		pods: "110,1000,3000",
		span: time.Minute, warmUp: 70 * time.Second, idleFor: 40 * time.Second, others: manyGroups}
}

func main() { frame.Main("cost", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.span, "seconds",
		"seconds of each scenario, after the warm-up; the agent reads all again once a minute")
	set.StringVar(&s.pods, "pods", s.pods,
		"pods; after a comma, numbers of idle pods of one container to measure besides (0 for the first: these alone)")
	set.IntVar(&s.size.Containers, "containers", s.size.Containers,
		"containers in all pods of the first number; a tenth of them is throttled in the second scenario")
	set.BoolVar(&s.polls, "polls", true, "measure the agent that polls for throttles, too")
	set.Func("flags", "flags of the agent, such as --record-dir= (no record of periods)", func(text string) error {
		s.flags = strings.Fields(text)
		return nil
	})
	set.StringVar(&s.bare, "bare", "",
		"be the bare loop: read the files that are listed in this file until standard input ends")
}

// Check implements frame.Experiment.
func (s *settings) Check() (err error) {
	if err := s.counts(s.pods); err != nil {
		return err
	}
	if n := s.size.Pods; n > 0 && s.size.Containers < n {
		err = fmt.Errorf("%d containers in %d pods: each pod needs a container; hint: -containers %d",
			s.size.Containers, n, n)
	}
	return cmp.Or(err, frame.Within("-seconds", s.span, time.Second, 10*time.Minute))
}

// Part is the bare loop, where this process is one.
func (s *settings) Part() func() error {
	if s.bare == "" {
		return nil
	}
	return func() error { return readAgainAndAgain(s.bare) }
}

// mostPods is the most for which one machine can run a process each: 20,000 files, two for each process.
const mostPods = 5000

// counts reads the numbers of pods.
func (s *settings) counts(list string) error {
	var numbers []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 || n > mostPods {
			return fmt.Errorf("-pods %q: %q is not a number between 0 and %d; hint: -pods 110,1000,3000", list, text,
				mostPods)
		}
		numbers = append(numbers, n)
	}
	s.size.Pods, s.idle = numbers[0], numbers[1:]
	if slices.Contains(s.idle, 0) || s.size.Pods == 0 && len(s.idle) == 0 {
		return fmt.Errorf("-pods %q: at least one pod is needed; hint: -pods 110,1000,3000", list)
	}
	return nil
}

// bench is a measurement under way.
type bench struct {
	*frame.Bench
	*settings
	size  size
	fleet *fleet
	dir   string // the bare loop's list
}

// Measure runs the scenarios, then those of idle pods.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	r := &result{size: s.size, Seconds: s.span.Seconds(), CPUs: runtime.NumCPU()}
	if s.size.Pods > 0 {
		s.with(ctx, s.size, f, func(b *bench) { b.scenarios(ctx, r) })
	}
	for _, pods := range s.idle {
		s.with(ctx, size{Pods: pods, Containers: pods, idle: true}, f, func(b *bench) { b.idlePods(ctx, r) })
	}
	return r, nil
}

// with makes groups, and removes them after do.
func (s *settings) with(ctx context.Context, of size, all *frame.Bench, do func(*bench)) {
	plain := s.Settings
	plain.Groups = frame.Plain
	frame.Check(frame.With(ctx, "bench", &plain, all.Say, func(f *frame.Bench) {
		f.Say("making %d pods and %d containers", of.Pods, of.Containers)
		b := &bench{Bench: f, settings: s, size: of, dir: f.Dir("bench"), fleet: newFleet(ctx, f, of)}
		f.Undo(b.fleet.close)
		do(b)
	}))
}

// scenarios runs both, with throttle events and polling, and measures the bare loop beside them.
func (b *bench) scenarios(ctx context.Context, r *result) {
	r.Cgroup = b.Tree().Version().String()
	ways := []bool{false}
	if b.polls {
		ways = append(ways, true)
	}
	for _, throttled := range []bool{false, true} {
		for _, polls := range ways {
			if throttled {
				b.fleet.throttle()
			}
			r.Scenarios = append(r.Scenarios, b.scenario(ctx, throttled, polls))
		}
	}
	r.Refills = b.refills(ctx)
}

// scenario starts an agent, warms it up, and measures it and the bare loop in the same seconds.
func (b *bench) scenario(ctx context.Context, throttled, polls bool) (sc scenario) {
	sc.Name, sc.Polls, sc.AimCPU = idleName, polls, aimCPU
	switch {
	case throttled:
		sc.Name = "10 % throttled"
	case !polls:
		sc.AimCPU = aimIdle
	}
	b.Say("%s: warming up", sc.title())
	b.Scope(ctx, func(f *frame.Bench) {
		a := b.startAgent(ctx, f, polls)
		// The second half of the warm-up tells how often the agent reads.
		// It is longer than the agent ever leaves a group alone.
		frame.Check(experiment.Pause(ctx, b.warmUp/2))
		reads := frame.Must(spends(ctx, a.Child(), b.warmUp/2)).Reads
		loop := b.startLoop(sameFiles(b.Tree(), b.settings.Root, b.fleet.units, reads))
		f.Undo(loop.Kill)
		b.Say("%s: measuring for %v", sc.title(), b.span)
		b.window(ctx, a, loop, &sc)
	})
	return sc
}

// status is that of an agent, which is to be subscribed to throttle events.
func status(ctx context.Context, a *experiment.Agent, subscribed bool) report.Status {
	s := frame.Must(a.Status(ctx))
	if subscribed && !s.Events.Subscribed {
		frame.Check(fmt.Errorf("there are no throttle events: %s", s.Events.Why))
	}
	return s
}

// window measures between two snapshots. The snapshots are taken outside of it, for making one costs the agent too.
func (b *bench) window(ctx context.Context, a *experiment.Agent, loop *experiment.Child, sc *scenario) {
	first := status(ctx, a, !sc.Polls)
	stood := b.fleet.stood()
	var both errgroup.Group
	for c, into := range map[*experiment.Child]*rate{a.Child(): &sc.Agent, loop: &sc.Bare} {
		both.Go(func() (err error) {
			*into, err = spends(ctx, c, b.span)
			return err
		})
	}
	frame.Check(both.Wait())
	sc.RSS, sc.Open = frame.Must(a.Child().Memory("VmRSS:")), b.openFiles(a.Child())
	last := frame.Must(a.Status(ctx))
	for group, periods := range b.fleet.stood() {
		if periods > stood[group] {
			sc.Throttled++
		}
	}
	sc.TurnP99 = last.Self.TurnP99
	span := last.Now.Sub(first.Now).Seconds()
	sc.Turns = float64(last.Self.Turns-first.Self.Turns) / span
	sc.Looks = float64(last.Self.Looks-first.Self.Looks) / span
	sc.Writes = experiment.Writes(last) - experiment.Writes(first)
	sc.NodeUsed = last.Node.Used
}

// spends is the mean use of a process over a while from now on.
func spends(ctx context.Context, c *experiment.Child, span time.Duration) (rate, error) {
	before, after, err := experiment.Around(func() (spent, error) { return spentOf(c) },
		func() error { return experiment.Pause(ctx, span) })
	if err != nil {
		return rate{}, errors.Join(c.Ended(), err)
	}
	return after.since(before), c.Ended()
}

// startLoop starts the bare loop on files.
func (b *bench) startLoop(files []string) *experiment.Child {
	list := filepath.Join(b.dir, "files")
	frame.Check(os.WriteFile(list, []byte(strings.Join(files, "\n")), 0o600))
	return frame.Must(experiment.Launch(experiment.Again("-bare", list), func(int) error { return nil }))
}

// startAgent starts the agent on the groups of the fleet alone, and waits until it manages all of them. The threshold
// is at the whole machine, so that the guard does not take back what the second scenario raises.
func (b *bench) startAgent(ctx context.Context, f *frame.Bench, polls bool) *experiment.Agent {
	flags := slices.Clone(b.flags)
	if polls {
		flags = append(flags, "--poll")
	}
	a := f.Agent(experiment.Setup{Flags: flags})
	base := b.Base()
	text := fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n"+
		"  - {cgroup: %q, policy: auto}\n  - {cgroup: %q, policy: auto}\n", base+"/pod*", base+"/pod*/c*")
	frame.Check(a.Follow(ctx, text, func() error { return frame.Manages(ctx, a, len(b.fleet.units)) }))
	return a
}

// spent is what a process has used so far.
type spent struct {
	at    time.Time
	cpu   time.Duration
	reads int64 // system calls that read
}

func spentOf(c *experiment.Child) (spent, error) {
	used, err := c.Used()
	reads, failed := c.Count("io", "syscr:")
	return spent{time.Now(), used, reads}, errors.Join(err, failed)
}

// openFiles counts the descriptors of an agent, for each managed group.
func (b *bench) openFiles(agent *experiment.Child) float64 {
	return float64(len(frame.Must(os.ReadDir(fmt.Sprintf("/proc/%d/fd", agent.PID()))))) / float64(len(b.fleet.units))
}
