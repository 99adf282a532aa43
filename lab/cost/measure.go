package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"plimsoll/lab/experiment"
)

// bench is a measurement under way.
type bench struct {
	settings
	groups *experiment.Groups
	fleet  *fleet
	dir    string // the bare loop's list
	say    func(format string, args ...any)
}

// measure runs the scenarios, then those of idle pods, and cleans up, however it ends. Progress goes to say.
func measure(ctx context.Context, s settings, say func(string, ...any)) (*result, error) {
	r := &result{size: s.size, Seconds: s.span.Seconds(), CPUs: runtime.NumCPU()}
	if s.size.Pods > 0 {
		err := s.with(ctx, s.size, say, func(b *bench) error { return b.scenarios(ctx, r) })
		if err != nil {
			return nil, err
		}
	}
	for _, pods := range s.idle {
		err := s.with(ctx, size{Pods: pods, Containers: pods, idle: true}, say, func(b *bench) error { return b.idlePods(ctx, r) })
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// with makes groups, and removes them after do.
func (s settings) with(ctx context.Context, of size, say func(string, ...any), do func(*bench) error) (err error) {
	groups, err := experiment.NewGroups(s.cgroupRoot, "bench")
	if err != nil {
		return err
	}
	b := &bench{settings: s, groups: groups, say: say}
	b.size = of
	defer func() { err = errors.Join(err, b.close()) }()
	if b.dir, err = experiment.TempDir("bench"); err != nil {
		return err
	}
	say("making %d pods and %d containers", of.Pods, of.Containers)
	if b.fleet, err = newFleet(ctx, groups, of); err != nil {
		return err
	}
	return do(b)
}

// scenarios runs both, with throttle events and polling, and measures the bare loop beside them.
func (b *bench) scenarios(ctx context.Context, r *result) (err error) {
	r.Cgroup = b.groups.Tree().Version().String()
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
func (s settings) ways() []bool {
	if s.polls {
		return []bool{false, true}
	}
	return []bool{false}
}

// close ends the processes, then removes what they were in.
func (b *bench) close() error {
	var errs []error
	if b.fleet != nil {
		errs = append(errs, b.fleet.close())
	}
	errs = append(errs, b.groups.Close())
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
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
	b.say("%s: warming up", sc.title())
	a, err := b.startAgent(ctx, polls)
	if err != nil {
		return sc, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	reads, err := pace(ctx, processOf(a.Child()), b.warmUp)
	if err != nil {
		return sc, err
	}
	loop, err := b.startLoop(sameFiles(b.groups.Tree(), b.cgroupRoot, b.fleet.units, reads))
	if err != nil {
		return sc, err
	}
	defer func() { err = errors.Join(err, loop.Stop(0)) }()
	b.say("%s: measuring for %v", sc.title(), b.span)
	err = b.window(ctx, a, loop, &sc)
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
	agent, bare, err := during(ctx, b.span, a.Child(), loop)
	if err != nil {
		return err
	}
	rss, err := processOf(a.Child()).rss()
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
	sc.Agent, sc.Bare = agent, bare
	sc.RSS, sc.TurnP99 = rss, last.Self.TurnP99
	span := last.Now.Sub(first.Now).Seconds()
	sc.Turns = float64(last.Self.Turns-first.Self.Turns) / span
	sc.Looks = float64(last.Self.Looks-first.Self.Looks) / span
	sc.Writes = experiment.Writes(last) - experiment.Writes(first)
	sc.NodeUsed = last.Node.Used
	return nil
}

// during measures two processes over the same time.
func during(ctx context.Context, span time.Duration, a, b *experiment.Child) (rate, rate, error) {
	var r [2]rate
	var before [2]spent
	for i, c := range []*experiment.Child{a, b} {
		var err error
		if before[i], err = processOf(c).spent(); err != nil {
			return r[0], r[1], errors.Join(c.Ended(), err)
		}
	}
	if err := experiment.Pause(ctx, span); err != nil {
		return r[0], r[1], err
	}
	for i, c := range []*experiment.Child{a, b} {
		after, err := processOf(c).spent()
		if err := errors.Join(c.Ended(), err); err != nil {
			return r[0], r[1], err
		}
		r[i] = after.since(before[i])
	}
	return r[0], r[1], nil
}

// startLoop starts the bare loop on files.
func (b *bench) startLoop(files []string) (*experiment.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	list := filepath.Join(b.dir, "files")
	if err := os.WriteFile(list, []byte(strings.Join(files, "\n")), 0o600); err != nil {
		return nil, err
	}
	return experiment.Launch(exec.Command(self, "-bare", list), func(int) error { return nil })
}

// startAgent starts the agent on the groups of the fleet alone, and waits until it manages all of them. The threshold is
// at the whole machine, so that the guard does not take back what the second scenario raises.
func (b *bench) startAgent(ctx context.Context, polls bool) (*experiment.Agent, error) {
	setup := experiment.Setup{Binary: b.plimsoll, Root: b.cgroupRoot}
	if polls {
		setup.Flags = []string{"--poll"}
	}
	a, err := experiment.StartAgent(setup, b.groups)
	if err != nil {
		return nil, err
	}
	base := b.groups.Base()
	err = a.Configure(fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n"+
		"  - {cgroup: %q, policy: auto}\n  - {cgroup: %q, policy: auto}\n", base+"/pod*", base+"/pod*/c*"))
	if err == nil {
		err = a.Await(ctx, func() error { return b.known(ctx, a) })
	}
	if err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

// known is an error as long as the agent does not manage all groups.
func (b *bench) known(ctx context.Context, a *experiment.Agent) error {
	s, err := a.Status(ctx)
	if err == nil && len(s.Containers) != len(b.fleet.units) {
		err = fmt.Errorf("it knows %d of %d groups", len(s.Containers), len(b.fleet.units))
	}
	return err
}

// pace warms the agent up, and then finds out how often it reads in a second. The second half of the warm-up must be
// longer than the agent ever leaves a group alone.
func pace(ctx context.Context, agent process, warmUp time.Duration) (float64, error) {
	if err := experiment.Pause(ctx, warmUp/2); err != nil {
		return 0, err
	}
	first, err := agent.spent()
	if err != nil {
		return 0, err
	}
	if err := experiment.Pause(ctx, warmUp/2); err != nil {
		return 0, err
	}
	last, err := agent.spent()
	return last.since(first).Reads, err
}
