package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/internal/sysfs"
)

const (
	costRequests  = 9 // that the cost of one is the median of
	costGap       = 20 * time.Millisecond
	workTolerance = 20 // the work of a request stays within a twentieth: 40 ms +- 2
	firstSize     = 1 << 20
)

// run is an experiment under way.
type run struct {
	Config
	Cleanup
	groups  *Groups
	group   string // the server's
	limit   cpu.Bandwidth
	server  Server
	client  *load.Client
	offline *Offline   // nil where the machine is left as it is
	still   *throttles // nil without throttle events
	agent   *Agent     // nil where no mode needs one
	say     func(format string, args ...any)
	size    int           // of a request
	cost    time.Duration // CPU time of a request
}

// Run measures all modes and cleans up, however it ends. Progress goes to say.
func Run(ctx context.Context, c Config, server Server, say func(format string,
	args ...any)) (result *Result, err error) {
	if err := c.Check(runtime.NumCPU()); err != nil {
		return nil, err
	}
	groups, err := NewGroups(c.CgroupRoot, c.Name)
	if err != nil {
		return nil, err
	}
	r := &run{Config: c, groups: groups, limit: Limited(c.Limit), server: server, client: load.NewClient(openAtOnce),
		say: say}
	defer func() { err = r.Unwind(ctx, err) }()
	defer r.client.Close()
	r.Undo(groups.Close)
	if r.group, err = groups.Add("web"); err != nil {
		return nil, err
	}
	r.Undo(server.Stop)
	if err := server.Start(func(pid int) error { return groups.Enter(r.group, pid) }); err != nil {
		return nil, err
	}
	if err := r.surround(); err != nil {
		return nil, err
	}
	if err := r.calibrate(ctx); err != nil {
		return nil, err
	}
	if err := groups.Limit(r.group, r.limit); err != nil {
		return nil, err
	}
	if NeedsAgent(c.Modes) {
		setup := Setup{Binary: c.Agent, Root: c.CgroupRoot, Offline: r.offline}
		if r.agent, err = StartAgent(setup, groups); err != nil {
			return nil, err
		}
		r.Undo(r.agent.Stop)
	}
	return r.measure(ctx)
}

// surround makes what is to be there beside the server in all modes alike.
func (r *run) surround() (err error) {
	if r.Loaded {
		if r.offline, err = StartOffline(r.CgroupRoot); err != nil {
			return err
		}
		r.Undo(r.offline.Stop)
	}
	if r.still, err = r.groups.watchThrottles(r.group); err != nil {
		r.say("time lost is taken from the counters, because there are no throttle events: %v", err)
		return nil
	}
	r.Undo(r.still.Close)
	return nil
}

// Cleanup is what is to be done in the end.
type Cleanup struct{ list []func() error }

// Undo has something done in the end: what was started last ends first, so that the agent restores while the groups are
// still there.
func (c *Cleanup) Undo(f func() error) { c.list = append(c.list, f) }

// Unwind does it. The error is why ctx ended, where that is what err comes from.
func (c *Cleanup) Unwind(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	errs := []error{err}
	for _, f := range slices.Backward(c.list) {
		errs = append(errs, f())
	}
	c.list = nil
	return errors.Join(errs...)
}

// calibrate finds the size of a request that costs the wanted CPU time, or the cost of the only size.
func (r *run) calibrate(ctx context.Context) (err error) {
	get := func(size int) error { return r.client.Get(ctx, r.server.URL(size)) }
	first := func() error { return get(firstSize) }
	if _, err := r.groups.cost(ctx, r.group, first); err != nil { // warm up
		return err
	}
	if r.Work == 0 {
		r.cost, err = r.groups.cost(ctx, r.group, first)
	} else {
		r.size, r.cost, err = r.groups.Calibrate(ctx, r.group, r.Work, get, r.say)
	}
	if err != nil {
		return err
	}
	return r.calibrateUnderLoad(ctx)
}

// Calibrate finds the size of a request that costs so much CPU time in a group that is not limited, and what it costs.
// Where no size settles, the best one is as good: its cost is known.
func (g *Groups) Calibrate(ctx context.Context, group string, work time.Duration, get func(size int) error,
	say func(format string, args ...any)) (size int, cost time.Duration, err error) {
	size, cost, err = load.Calibrate(work, work/workTolerance, firstSize, func(size int) (time.Duration, error) {
		return g.cost(ctx, group, func() error { return get(size) })
	})
	if errors.Is(err, load.ErrUnsettled) {
		say("careful: %v; going on with that", err)
		err = nil
	}
	return size, cost, err
}

// cost is the CPU time that a group needs for one request, the median of several: the kernel's count for all its
// threads, network included.
func (g *Groups) cost(ctx context.Context, group string, get func() error) (time.Duration, error) {
	var costs []time.Duration
	for range costRequests {
		cost, err := g.Spent(group, func() error {
			if err := get(); err != nil {
				return err
			}
			return Pause(ctx, costGap)
		})
		if err != nil {
			return 0, err
		}
		costs = append(costs, cost)
	}
	slices.Sort(costs)
	return costs[costRequests/2], nil
}

// Around reads before and after something is done.
func Around[T any](read func() (T, error), do func() error) (before, after T, err error) {
	if before, err = read(); err == nil {
		err = do()
	}
	if err == nil {
		after, err = read()
	}
	return before, after, err
}

// Pause sleeps; the error is why ctx ended.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// rate is how many requests a second use as much as was asked for.
func (r *run) rate() float64 { return r.limit.CPUs() * r.Utilization / r.cost.Seconds() }

// send asks for one answer.
func (r *run) send(ctx context.Context) error { return r.client.Get(ctx, r.server.URL(r.size)) }

func (r *run) measure(ctx context.Context) (*Result, error) {
	rate := r.rate()
	due, slot := arrivals(r.Seed, rate, r.PerMode/time.Duration(r.Rounds), r.Rounds, r.Requests)
	r.say("a request costs %.1f ms of CPU time under load; %.2f requests a second use %.0f %% of %g CPUs",
		1e3*r.cost.Seconds(), rate, 100*r.Utilization, r.limit.CPUs())
	r.say("modes: %d, rounds: %d, of %.1f s each: about %v", len(r.Modes), r.Rounds, slot.Seconds(),
		(time.Duration(r.Rounds*len(r.Modes)) * (slot + afterChange + time.Second)).Round(time.Second))
	slots, err := Turns(r.say, r.Rounds, r.Seed, r.Modes,
		func(round int, mode Mode) (Slot, error) { return r.slot(ctx, mode, due[round]) },
		func(s Slot) string {
			return fmt.Sprintf("%-17s  p99 %4.0f ms  throttled %4.1f %%", s.Mode,
				Milliseconds(s.Load.Latency.Quantile(0.99)), 100*Ratio(s.Usage.Throttled, s.Usage.Periods))
		})
	if err != nil {
		return nil, err
	}
	result := summarize(slots, r.Modes)
	result.Conditions = Conditions{
		Version: r.Version, Kernel: Kernel(), Cgroup: r.groups.Tree().Version().String(), CPUs: runtime.NumCPU(),
		Limit: r.limit.CPUs(), Utilization: r.Utilization, Rate: rate, Work: 1e3 * r.cost.Seconds(),
		Seconds: slot.Seconds() * float64(r.Rounds), Rounds: r.Rounds, Seed: r.Seed,
		CanBurst: r.groups.canBurst(r.group),
		Loaded:   r.Loaded, Behind: r.offline != nil && r.offline.Behind, Exact: r.still != nil,
	}
	return result, nil
}

// slot measures one mode once.
func (r *run) slot(ctx context.Context, mode Mode, due []time.Duration) (s Slot, err error) {
	err = r.groups.Under(r.agent, mode, r.group, r.limit, func() (err error) {
		back := func() error { return nil }
		if mode == RequestsOnly {
			if back, err = r.removeLimits(runtime.NumCPU()); err != nil {
				return err
			}
		}
		s, err = r.sample(ctx, func() *load.Outcome {
			return load.Run(ctx, due, load.Bounds{Timeout: timeout, Open: openAtOnce}, r.send)
		})
		err = cmp.Or(err, context.Cause(ctx))
		if err == nil && mode.Policy().Quota() {
			s.GaveBack, err = r.groups.awaitLimit(ctx, r.group, r.limit)
		}
		return errors.Join(err, back())
	})
	s.Mode = mode
	return s, err
}

// Under measures a group in a mode. The limit is removed, where the mode has none, only while the agent is passive.
// Without an agent, measure begins as late as with one.
func (g *Groups) Under(a *Agent, mode Mode, group string, limit cpu.Bandwidth, measure func() error) error {
	if a == nil {
		time.Sleep(afterChange)
	} else if err := a.Apply(mode.Policy(), []string{group}, limit); err != nil {
		return err
	}
	if !mode.Unlimited() {
		return measure()
	}
	if err := g.Limit(group, cpu.Bandwidth{Quota: cpu.Unlimited}); err != nil {
		return err
	}
	return errors.Join(measure(), g.Limit(group, limit))
}

// Kernel is the release of the running kernel.
func Kernel() string {
	release, err := sysfs.NewHost("/").Release()
	if err != nil {
		return "unknown"
	}
	return release
}
