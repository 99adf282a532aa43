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

	"plimsoll/internal/report"
	"plimsoll/internal/web"
	"plimsoll/lab/experiment"
)

const (
	startPatience = 30 * time.Second // the agent finds and prepares all groups
	stopPatience  = 30 * time.Second // it puts all of them back
	askPatience   = 5 * time.Second
)

// bench is a measurement under way.
type bench struct {
	settings
	groups *experiment.Groups
	fleet  *fleet
	dir    string // configuration, state, the bare loop's list
	say    func(format string, args ...any)
}

// measure runs both scenarios and cleans up, however it ends. Progress goes to say.
func measure(ctx context.Context, s settings, say func(string, ...any)) (r *result, err error) {
	groups, err := experiment.NewGroups(s.cgroupRoot, "bench")
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, groups: groups, say: say}
	defer func() { err = errors.Join(err, b.close()) }()
	if b.dir, err = experiment.TempDir("bench"); err != nil {
		return nil, err
	}
	say("making %d pods and %d containers", s.size.Pods, s.size.Containers)
	if b.fleet, err = newFleet(ctx, groups, s.size); err != nil {
		return nil, err
	}
	r = &result{size: s.size, Seconds: s.span.Seconds(), CPUs: runtime.NumCPU(), Cgroup: groups.Tree().Version().String()}
	for _, throttled := range []bool{false, true} {
		for _, polls := range s.ways() {
			if throttled {
				if err := b.fleet.throttle(); err != nil {
					return nil, err
				}
			}
			sc, err := b.scenario(ctx, throttled, polls)
			if err != nil {
				return nil, err
			}
			r.Scenarios = append(r.Scenarios, sc)
		}
	}
	if r.Refills, err = b.refills(ctx); err != nil {
		return nil, err
	}
	r.LoadLine, err = sizeBursts(s.size.Containers)
	return r, err
}

// ways are those of hearing of throttles that are measured: told by the kernel, and polling.
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

// scenario starts an agent, lets it settle, and measures it and the bare loop in the same seconds.
func (b *bench) scenario(ctx context.Context, throttled, polls bool) (sc scenario, err error) {
	sc.Name, sc.Polls, sc.AimCPU = idleName, polls, aimCPU
	switch {
	case throttled:
		sc.Name = "10 % throttled"
	case !polls:
		sc.AimCPU = aimIdle
	}
	b.say("%s: warming up", sc.title())
	a, err := b.startAgent(polls)
	if err != nil {
		return sc, err
	}
	defer func() { err = errors.Join(err, a.child.Stop(stopPatience)) }()
	if err := a.knows(ctx, len(b.fleet.units)); err != nil {
		return sc, err
	}
	reads, err := a.pace(ctx, b.warmUp)
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
func (b *bench) window(ctx context.Context, a *agent, loop *child, sc *scenario) error {
	first, err := a.status(ctx)
	if err != nil {
		return err
	}
	if !first.Events.Heard && !sc.Polls {
		return fmt.Errorf("the kernel tells of no throttles: %s", first.Events.Why)
	}
	stood, err := b.fleet.stood()
	if err != nil {
		return err
	}
	agent, bare, err := during(ctx, b.span, &a.child, loop)
	if err != nil {
		return err
	}
	rss, err := a.process().rss()
	if err != nil {
		return err
	}
	last, err := a.status(ctx)
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
func during(ctx context.Context, span time.Duration, a, b *child) (rate, rate, error) {
	var r [2]rate
	var before [2]spent
	for i, c := range []*child{a, b} {
		var err error
		if before[i], err = c.process().spent(); err != nil {
			return r[0], r[1], errors.Join(c.Ended(), err)
		}
	}
	if err := experiment.Pause(ctx, span); err != nil {
		return r[0], r[1], err
	}
	for i, c := range []*child{a, b} {
		after, err := c.process().spent()
		if err := errors.Join(c.Ended(), err); err != nil {
			return r[0], r[1], err
		}
		r[i] = after.since(before[i])
	}
	return r[0], r[1], nil
}

// child is a process that is measured.
type child struct {
	*experiment.Child
	cmd *exec.Cmd
}

func (c *child) process() process { return process(c.cmd.Process.Pid) }

func launch(cmd *exec.Cmd) (child, error) {
	c, err := experiment.Launch(cmd, func(int) error { return nil })
	return child{c, cmd}, err
}

// startLoop starts the bare loop on files.
func (b *bench) startLoop(files []string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	list := filepath.Join(b.dir, "files")
	if err := os.WriteFile(list, []byte(strings.Join(files, "\n")), 0o600); err != nil {
		return nil, err
	}
	c, err := launch(exec.Command(self, "-bare", list))
	return &c, err
}

// agent is the real binary at work.
type agent struct {
	child  child
	client *web.Client
}

func (a *agent) process() process { return a.child.process() }

// startAgent starts the agent on the groups of the fleet alone. The threshold is at the whole machine, so that the
// guard does not take back what the second scenario raises.
func (b *bench) startAgent(polls bool) (*agent, error) {
	config := filepath.Join(b.dir, "config.yaml")
	state := filepath.Join(b.dir, "state")
	base := b.groups.Base()
	text := fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n"+
		"  - {cgroup: %q, policy: auto}\n  - {cgroup: %q, policy: auto}\n", base+"/pod*", base+"/pod*/c*")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	args := []string{"run", "--config", config, "--state-dir", state, "--cgroup-root", b.cgroupRoot, "--listen", ""}
	if polls {
		args = append(args, "--poll")
	}
	c, err := launch(exec.Command(b.plimsoll, args...))
	return &agent{c, web.Dial(filepath.Join(state, web.SocketName))}, err
}

func (a *agent) status(ctx context.Context) (report.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	s, err := a.client.Status(ctx)
	if err != nil {
		err = errors.Join(a.child.Ended(), err)
	}
	return s, err
}

// knows waits until the agent looks after all groups.
func (a *agent) knows(ctx context.Context, groups int) error {
	for deadline := time.Now().Add(startPatience); ; {
		s, err := a.status(ctx)
		if err == nil && len(s.Containers) == groups {
			return nil
		}
		if err := a.child.Ended(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("after %v the agent knows %d of %d groups", startPatience, len(s.Containers), groups), err)
		}
		if err := experiment.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// pace lets the agent settle, and then finds out how often it reads in a second. The second half of the warm-up is to be
// longer than the agent ever leaves a group alone.
func (a *agent) pace(ctx context.Context, warmUp time.Duration) (float64, error) {
	if err := experiment.Pause(ctx, warmUp/2); err != nil {
		return 0, err
	}
	first, err := a.process().spent()
	if err != nil {
		return 0, err
	}
	if err := experiment.Pause(ctx, warmUp/2); err != nil {
		return 0, err
	}
	last, err := a.process().spent()
	return last.since(first).Reads, err
}
