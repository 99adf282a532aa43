package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
	"plimsoll/lab/experiment"
)

//go:embed Ready.java
var program []byte

// The modes, in the order of each round.
const (
	none      = "none"      // its limit, and nothing else
	auto      = "auto"      // its limit, and the agent
	unlimited = "unlimited" // no limit
)

var modes = [...]string{none, auto, unlimited}

// bench is a measurement under way.
type bench struct {
	settings
	groups *experiment.Groups
	agent  *experiment.Agent
	probe  *probe.Probe
	host   *sysfs.Host
	source string
	line   float64 // CPUs up to which the node's use may come
}

// measure does all rounds and cleans up, however it ends. Progress goes to say.
func measure(ctx context.Context, s settings, say func(string, ...any)) (r *result, err error) {
	dir, err := experiment.TempDir("start")
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, host: sysfs.NewHost("/"), source: filepath.Join(dir, "Ready.java")}
	defer func() { err = errors.Join(err, b.close(), os.RemoveAll(dir)) }()
	if err := os.WriteFile(b.source, program, 0o600); err != nil {
		return nil, err
	}
	if b.groups, err = experiment.NewGroups(s.cgroupRoot, "start"); err != nil {
		return nil, err
	}
	if b.probe, err = probe.Open(probe.Options{}); err != nil {
		return nil, experiment.WithHint(err, probe.Explain(err))
	}
	if err := b.startAgent(ctx); err != nil {
		return nil, err
	}
	r = &result{Limit: s.limit, Percent: s.percent, Threshold: s.threshold, Flags: s.flags, Line: b.line, Cgroup: b.groups.Tree().Version().String()}
	for round := range s.rounds {
		for _, mode := range modes {
			x, err := b.start(ctx, mode, round)
			if err != nil {
				return nil, fmt.Errorf("mode %s, round %d: %w", mode, round+1, err)
			}
			say("round %d of %d, %-9s ready after %.2f s, throttled for %.2f s, others used %.2f CPUs; %s", round+1, s.rounds, mode, x.Ready.Seconds(),
				x.Still.Seconds(), x.Others, x.Why)
			r.Starts = append(r.Starts, x)
		}
	}
	return r, nil
}

func (b *bench) close() error {
	var errs []error
	if b.agent != nil {
		errs = append(errs, b.agent.Stop())
	}
	if b.probe != nil {
		errs = append(errs, b.probe.Close())
	}
	if b.groups != nil {
		errs = append(errs, b.groups.Close())
	}
	return errors.Join(errs...)
}

// startAgent starts an agent that manages the groups of mode auto alone.
func (b *bench) startAgent(ctx context.Context) (err error) {
	if b.agent, err = experiment.StartAgent(experiment.Setup{Binary: b.plimsoll, Root: b.cgroupRoot}, b.groups); err != nil {
		return err
	}
	text := fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: %d}\noverrides:\n  - {cgroup: %q, policy: auto, startupBurstPercent: %d}\n",
		b.threshold, b.groups.Base()+"/"+auto+"-*", b.percent)
	if b.pod {
		text += fmt.Sprintf("  - {cgroup: %q, policy: auto, startupBurstPercent: %d}\n", b.groups.Base()+"/"+auto+"-*/"+container, b.percent)
	}
	if err := b.agent.Configure(text); err != nil {
		return err
	}
	return b.agent.Await(ctx, func() error {
		s, err := b.agent.Status(ctx)
		if n := s.Node; err == nil && n.Threshold != n.Capacity*float64(b.threshold)/100 {
			err = fmt.Errorf("the threshold is %.2f of %.2f CPUs", n.Threshold, n.Capacity)
		}
		b.line = s.Node.Threshold
		return err
	})
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

// group makes a new one for a start, limited but in mode unlimited, and in a pod of the same limit if that is asked for. The
// kernel is to tell of its throttles, and its pod's.
func (b *bench) group(mode string, round int) (group string, inodes []uint64, err error) {
	name := fmt.Sprintf("%s-%d", mode, round)
	add := b.groups.Add
	if b.pod {
		add = b.groups.AddParent
	}
	for {
		if group, err = add(name); err != nil {
			return group, nil, err
		}
		inode, err := b.groups.Tree().Inode(group)
		if err != nil {
			return group, nil, err
		}
		inodes = append(inodes, inode)
		if mode != unlimited {
			if err := b.groups.Limit(group, experiment.Limited(b.limit)); err != nil {
				return group, nil, err
			}
		}
		if !b.pod || len(inodes) > 1 {
			return group, inodes, b.probe.Watch(inodes)
		}
		name, add = name+"/"+container, b.groups.Add
	}
}

// start runs the program to its end in a new group of a mode.
func (b *bench) start(ctx context.Context, mode string, round int) (x start, err error) {
	group, inodes, err := b.group(mode, round)
	if err != nil {
		return x, err
	}
	args := append(strings.Fields(b.flags), "-Xmx256m", b.source)
	if mode == unlimited {
		args = append([]string{"-XX:ActiveProcessorCount=1", "-XX:+UseSerialGC"}, args...)
	}
	var out begun
	cmd := experiment.Gated(b.java, args...)
	cmd.Stdout = &out
	busy, err := b.host.Busy()
	if err != nil {
		return x, err
	}
	from := time.Now()
	child, err := experiment.Launch(cmd, func(pid int) error { return b.groups.Enter(group, pid) })
	if err != nil {
		return x, err
	}
	if err := errors.Join(child.Wait(ctx), child.Stop(0)); err != nil {
		return x, err
	}
	x = start{Mode: mode, Ready: out.at.Sub(from), Saw: strings.TrimSpace(out.text.String())}
	return x, b.account(ctx, group, inodes, &x, busy, time.Since(from))
}

// account adds what the kernel and the agent say of a start.
func (b *bench) account(ctx context.Context, group string, inodes []uint64, x *start, busy, took time.Duration) error {
	now, err := b.host.Busy()
	if err != nil {
		return err
	}
	used, err := b.groups.Used(group)
	if err != nil {
		return err
	}
	x.Used, x.Others = used, max(0, (now-busy-used).Seconds()/took.Seconds())
	for _, inode := range inodes { // where a pod and its container are throttled at once, both count
		t, _ := b.probe.Totals(inode) // it is watched
		x.Throttles += t.Begins
		x.Still += t.Wall
	}
	if x.Mode != auto {
		return nil
	}
	status, err := b.agent.Status(ctx)
	if err != nil {
		return err
	}
	c, err := report.Find(status.Containers, group)
	if err != nil {
		return fmt.Errorf("the agent does not know the group: %w", err)
	}
	x.Refills, x.AtCap, x.AtCapTime, x.Raises, x.Why = c.Totals.Refills, c.Totals.AtCap, c.Totals.AtCapWall, c.Totals.Raises, c.Why
	return nil
}
