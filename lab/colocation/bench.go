package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"plimsoll/internal/load"
	"plimsoll/lab/experiment"
)

const (
	connections = 8                // for each CPU, so that every worker of nginx has some
	timeout     = 10 * time.Second // of a request
	openAtOnce  = 512
	afterChange = time.Second // after a change, before it is measured
)

// bench is a measurement under way.
type bench struct {
	settings
	groups          *experiment.Groups
	online, offline string // groups
	below           string // one for ffmpeg below another, as the kubelet has its pods
	agent           *experiment.Agent
	server          *experiment.Site
	film            ffmpeg
	clients         []*load.Client
	next            atomic.Int64
	foremost        bool
	say             func(format string, args ...any)
}

// measure measures all rows and cleans up, however it ends. Progress goes to say.
func measure(ctx context.Context, s settings, say func(string, ...any)) (r *result, err error) {
	b := &bench{settings: s, say: say, foremost: true, film: ffmpeg{size: filmSize}}
	document := fileSize
	if s.emulated {
		document, b.film.size = smallFile, smallFilm
	}
	if b.server, err = newNginx(document); err != nil {
		return nil, err
	}
	if b.film.binary, err = experiment.Program("ffmpeg"); err != nil {
		return nil, err
	}
	if b.groups, err = experiment.NewGroups(s.cgroupRoot, "colocation"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(experiment.OrInterrupt(ctx, err), b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	slots, err := b.measureRounds(ctx)
	if err != nil {
		return nil, err
	}
	r = summarize(slots, b.rows)
	r.Conditions = conditions{
		Kernel: experiment.Kernel(), Cgroup: b.groups.Tree().Version().String(), CPUs: runtime.NumCPU(), Rate: s.rate,
		Seconds: s.perRow.Seconds(), Rounds: s.rounds, Seed: s.seed, Emulated: s.emulated, Foremost: b.foremost,
	}
	return r, nil
}

func (b *bench) prepare(ctx context.Context) (err error) {
	if err := b.makeGroups(); err != nil {
		return err
	}
	if err := b.film.prepare(ctx); err != nil {
		return err
	}
	for range connections * runtime.NumCPU() {
		b.clients = append(b.clients, load.NewClient(1))
	}
	if err := b.server.Start(func(pid int) error { return b.groups.Enter(b.online, pid) }); err != nil {
		return err
	}
	if b.agent, err = experiment.StartAgent(experiment.Setup{Binary: b.plimsoll, Root: b.cgroupRoot}, b.groups); err != nil {
		return err
	}
	if len(b.rows) > 0 {
		return nil
	}
	found, err := b.mechanisms(ctx)
	b.rows = present(found, hasSchedExt())
	return err
}

// makeGroups makes the groups as the kubelet has those of its pods.
func (b *bench) makeGroups() (err error) {
	for _, parent := range []string{"kubepods", "kubepods/besteffort"} {
		if _, err := b.groups.AddParent(parent); err != nil {
			return err
		}
	}
	if b.online, err = b.groups.Add("kubepods/online"); err != nil {
		return err
	}
	if b.offline, err = b.groups.Add("kubepods/offline"); err != nil {
		return err
	}
	b.below, err = b.groups.Add("kubepods/besteffort/offline")
	return err
}

// close ends what was started, last first: the agent restores while the groups are still there.
func (b *bench) close() error {
	for _, c := range b.clients {
		c.Close()
	}
	var agent error
	if b.agent != nil {
		agent = b.agent.Stop()
	}
	return errors.Join(agent, b.film.remove(), b.server.Stop(), b.groups.Close())
}

// measureRounds has the rows take turns.
func (b *bench) measureRounds(ctx context.Context) ([]slot, error) {
	length := b.perRow / time.Duration(b.rounds)
	total := b.rounds * len(b.rows)
	b.say("%d rows, %d rounds of %.1f s each: about %v", len(b.rows), b.rounds, length.Seconds(),
		(time.Duration(total) * (length + 2*afterChange)).Round(time.Second))
	due := load.Constant(b.rate, length)
	var slots []slot
	for round := range b.rounds {
		for _, r := range experiment.Order(b.rows, b.seed, round) {
			s, err := b.slot(ctx, r, due)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", r, round+1, err)
			}
			slots = append(slots, s)
			b.say("[%*d/%d] %-9s p99 %5.2f ms  machine %3.0f %%  ffmpeg %5.1f frames/s", len(fmt.Sprint(total)), len(slots), total, r,
				experiment.Milliseconds(s.load.Latency.Quantile(0.99)), 100*s.machine, s.frames)
		}
	}
	return slots, nil
}

// slot measures one row once.
func (b *bench) slot(ctx context.Context, r row, due []time.Duration) (s slot, err error) {
	if err := b.apply(r); err != nil {
		return s, err
	}
	if r.beside() {
		defer func() { err = errors.Join(err, b.film.stop()) }()
		if err := b.film.start(ctx, func(pid int) error {
			return errors.Join(experiment.Ordinary(pid), b.groups.Enter(b.home(r), pid))
		}); err != nil {
			return s, err
		}
	}
	if err := b.await(ctx, r); err != nil { // the agent takes no notice of groups that are empty
		return s, err
	}
	if err := b.warmUp(ctx); err != nil {
		return s, err
	}
	tasks, err := newWatch(b.groups.Tree(), b.online)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, tasks.close()) }()
	before, err := b.read(tasks)
	if err != nil {
		return s, err
	}
	slow := &tail{}
	outcome := b.request(ctx, due, tasks, slow)
	after, err := b.read(tasks)
	if err == nil {
		err = context.Cause(ctx)
	}
	s = between(r, before, after, outcome)
	s.slowest = slow.mean()
	return s, err
}

// warmUp opens the connections, and has this process come first once that is done.
func (b *bench) warmUp(ctx context.Context) error {
	out := b.request(ctx, load.Constant(b.rate, afterChange), nil, nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if out.Errors > 0 {
		return fmt.Errorf("%d of %d requests failed: %w", out.Errors, out.Requests(), out.Cause)
	}
	if err := experiment.ForemostWithKin(); err != nil {
		b.warn(err)
	}
	return nil
}

// warn says once that the load generator waits for CPUs like all other processes.
func (b *bench) warn(err error) {
	if b.foremost {
		b.say("careful: the load generator competes with what it measures: %v", err)
	}
	b.foremost = false
}

// reading are the counters at one end of a slot.
type reading struct {
	at              time.Time
	online, machine time.Duration // CPU time used
	tasks           taskTimes     // of nginx
	frames          frames
}

func (b *bench) read(tasks *watch) (r reading, err error) {
	r.at, r.frames = time.Now(), b.film.frames()
	if r.machine, err = b.groups.Tree().Usage("/"); err != nil {
		return r, err
	}
	if r.online, err = b.groups.Used(b.online); err != nil {
		return r, err
	}
	r.tasks, err = tasks.now()
	return r, err
}

// between is what came of a slot.
func between(r row, before, after reading, outcome *load.Outcome) slot {
	span := after.at.Sub(before.at)
	s := slot{row: r, load: outcome, seconds: span.Seconds(),
		machine: (after.machine - before.machine).Seconds() / span.Seconds() / float64(runtime.NumCPU()),
		online:  (after.online - before.online).Seconds() / span.Seconds()}
	if r.beside() {
		s.frames = before.frames.perSecond(after.frames)
	}
	if n := outcome.Requests(); n > 0 {
		tasks := after.tasks.since(before.tasks)
		s.ran, s.waited = tasks.ran/time.Duration(n), tasks.waited/time.Duration(n)
	}
	return s
}
