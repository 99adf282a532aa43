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
		if err := s.with(ctx, s.size, f, func(b *bench) error { return b.scenarios(ctx, r) }); err != nil {
			return nil, err
		}
	}
	for _, pods := range s.idle {
		of := size{Pods: pods, Containers: pods, idle: true}
		if err := s.with(ctx, of, f, func(b *bench) error { return b.idlePods(ctx, r) }); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// with makes groups, and removes them after do.
func (s *settings) with(ctx context.Context, of size, all *frame.Bench, do func(*bench) error) error {
	plain := s.Settings
	plain.Groups = frame.Plain
	return frame.With(ctx, "bench", &plain, all.Say, func(f *frame.Bench) (err error) {
		b := &bench{Bench: f, settings: s, size: of}
		if b.dir, err = f.Dir("bench"); err != nil {
			return err
		}
		f.Say("making %d pods and %d containers", of.Pods, of.Containers)
		b.fleet, err = newFleet(ctx, f, of)
		f.Undo(b.fleet.close)
		if err != nil {
			return err
		}
		return do(b)
	})
}

// scenarios runs both, with throttle events and polling, and measures the bare loop beside them.
func (b *bench) scenarios(ctx context.Context, r *result) (err error) {
	r.Cgroup = b.Tree().Version().String()
	for _, throttled := range []bool{false, true} {
		for _, polls := range b.ways() {
			if throttled {
				if err := b.fleet.throttle(); err != nil {
					return err
				}
			}
			sc, err := b.scenario(ctx, throttled, polls)
			if err != nil {
				return err
			}
			r.Scenarios = append(r.Scenarios, sc)
		}
	}
	if r.Refills, err = b.refills(ctx); err != nil {
		return err
	}
	r.LoadLine, err = sizeBursts(b.size.Containers)
	return err
}

// ways are the ways to learn of throttles that are measured: throttle events, and polling.
func (s *settings) ways() []bool {
	if s.polls {
		return []bool{false, true}
	}
	return []bool{false}
}

// scenario starts an agent, warms it up, and measures it and the bare loop in the same seconds.
func (b *bench) scenario(ctx context.Context, throttled, polls bool) (sc scenario, err error) {
	sc.Name, sc.Polls, sc.AimCPU = idleName, polls, aimCPU
	switch {
	case throttled:
		sc.Name = "10 % throttled"
	case !polls:
		sc.AimCPU = aimIdle
	}
	b.Say("%s: warming up", sc.title())
	err = b.Scope(ctx, func(f *frame.Bench) error {
		a, err := b.startAgent(ctx, f, polls)
		if err != nil {
			return err
		}
		reads, err := pace(ctx, a.Child(), b.warmUp)
		if err != nil {
			return err
		}
		loop, err := b.startLoop(sameFiles(b.Tree(), b.settings.Root, b.fleet.units, reads))
		if err != nil {
			return err
		}
		f.Undo(loop.Kill)
		b.Say("%s: measuring for %v", sc.title(), b.span)
		return b.window(ctx, a, loop, &sc)
	})
	return sc, err
}

// window measures between two snapshots. The snapshots are taken outside of it, for making one costs the agent too.
func (b *bench) window(ctx context.Context, a *experiment.Agent, loop *experiment.Child, sc *scenario) error {
	first, err := a.Status(ctx)
	if err != nil {
		return err
	}
	if !first.Events.Subscribed && !sc.Polls {
		return fmt.Errorf("there are no throttle events: %s", first.Events.Why)
	}
	stood, err := b.fleet.stood()
	if err != nil {
		return err
	}
	var both errgroup.Group
	for c, into := range map[*experiment.Child]*rate{a.Child(): &sc.Agent, loop: &sc.Bare} {
		both.Go(func() (err error) {
			*into, err = spends(ctx, c, b.span)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return err
	}
	rss, err := a.Child().Memory("VmRSS:")
	if err != nil {
		return err
	}
	if sc.Open, err = b.openFiles(a.Child()); err != nil {
		return err
	}
	last, err := a.Status(ctx)
	if err != nil {
		return err
	}
	now, err := b.fleet.stood()
	if err != nil {
		return err
	}
	for group, periods := range now {
		if periods > stood[group] {
			sc.Throttled++
		}
	}
	sc.RSS, sc.TurnP99 = rss, last.Self.TurnP99
	span := last.Now.Sub(first.Now).Seconds()
	sc.Turns = float64(last.Self.Turns-first.Self.Turns) / span
	sc.Looks = float64(last.Self.Looks-first.Self.Looks) / span
	sc.Writes = experiment.Writes(last) - experiment.Writes(first)
	sc.NodeUsed = last.Node.Used
	return nil
}

// spends is the mean use of a process over a while from now on.
func spends(ctx context.Context, c *experiment.Child, span time.Duration) (rate, error) {
	before, after, err := experiment.Around(func() (spent, error) { return spentOf(c) }, func() error { return experiment.Pause(ctx, span) })
	if err != nil {
		return rate{}, errors.Join(c.Ended(), err)
	}
	return after.since(before), c.Ended()
}

// startLoop starts the bare loop on files.
func (b *bench) startLoop(files []string) (*experiment.Child, error) {
	list := filepath.Join(b.dir, "files")
	if err := os.WriteFile(list, []byte(strings.Join(files, "\n")), 0o600); err != nil {
		return nil, err
	}
	return experiment.Launch(experiment.Again("-bare", list), func(int) error { return nil })
}

// startAgent starts the agent on the groups of the fleet alone, and waits until it manages all of them. The threshold is
// at the whole machine, so that the guard does not take back what the second scenario raises.
func (b *bench) startAgent(ctx context.Context, f *frame.Bench, polls bool) (*experiment.Agent, error) {
	var flags []string
	if polls {
		flags = []string{"--poll"}
	}
	a, err := f.Agent(experiment.Setup{Flags: flags})
	if err != nil {
		return nil, err
	}
	base := b.Base()
	text := fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n"+
		"  - {cgroup: %q, policy: auto}\n  - {cgroup: %q, policy: auto}\n", base+"/pod*", base+"/pod*/c*")
	return a, a.Follow(ctx, text, func() error { return frame.Manages(ctx, a, len(b.fleet.units)) })
}

// pace warms the agent up, and then finds out how often it reads in a second. The second half of the warm-up must be
// longer than the agent ever leaves a group alone.
func pace(ctx context.Context, agent *experiment.Child, warmUp time.Duration) (float64, error) {
	if err := experiment.Pause(ctx, warmUp/2); err != nil {
		return 0, err
	}
	use, err := spends(ctx, agent, warmUp/2)
	return use.Reads, err
}

// spent is what a process has used so far.
type spent struct {
	at    time.Time
	cpu   time.Duration
	reads int64 // system calls that read
}

func spentOf(c *experiment.Child) (spent, error) {
	used, err := c.Used()
	if err != nil {
		return spent{}, err
	}
	reads, err := c.Count("io", "syscr:")
	return spent{time.Now(), used, reads}, err
}

// openFiles counts the descriptors of an agent, for each managed group.
func (b *bench) openFiles(agent *experiment.Child) (float64, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", agent.PID()))
	return float64(len(list)) / float64(len(b.fleet.units)), err
}
