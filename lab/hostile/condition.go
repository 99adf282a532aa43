package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
)

// condition is one kind of hostility.
type condition struct {
	name, what string
	hostility
}

// hostility is around one agent: prepare is called before the agent starts, begin turns it on, end turns it off and
// takes it away, also where prepare or begin failed.
type hostility interface {
	prepare(ctx context.Context, b *bench, s *experiment.Setup) error
	// configure is the agent's configuration, before and after the begin.
	configure(b *bench, begun bool) string
	begin(ctx context.Context, b *bench, a *experiment.Agent) error
	end() error
}

func conditions() []condition {
	return []condition{
		{"status", "the status is read 10 times a second over the control socket", &statusReader{}},
		{"metrics", "8 scrapers of the metrics without a pause", &scrapers{}},
		{"bus", "a D-Bus that does not answer, while limits are written and the status is read", &hangingBus{}},
		{"api", "an API server that dies every second", &flappingAPI{}},
		{"exclusive", "many groups that ask for exclusive CPUs in vain, while groups come and go", &requesters{}},
		{"tenants", "many groups that are throttled in every period", &tenants{}},
		{"full-disk", "the state directory is full, while all pods are to get a burst", &fullDisk{}},
		{"slow-disk", "each fsync takes 50 ms, while all pods are to get a burst", &slowDisk{}},
		{"log", "nobody reads the log, while all pods are to get a burst", &blockedLog{}},
	}
}

func conditionNames() []string {
	var names []string
	for _, c := range conditions() {
		names = append(names, c.name)
	}
	return names
}

// plain is a hostility that needs nothing, and whose pods have a burst from the start.
type plain struct{ background }

func (*plain) prepare(context.Context, *bench, *experiment.Setup) error { return nil }

func (*plain) configure(b *bench, _ bool) string { return b.config(strategy.Auto, "", "") }

// background does things beside the bench until it is stopped.
type background struct {
	stops []context.CancelFunc
	all   sync.WaitGroup
	mu    sync.Mutex
	errs  []error
}

// every does something at a fixed rate, or less often where it takes longer, until it fails.
func (c *background) every(ctx context.Context, gap time.Duration, do func(context.Context) error) {
	ctx, stop := context.WithCancel(ctx)
	c.stops = append(c.stops, stop)
	c.all.Go(func() {
		tick := time.NewTicker(gap)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := do(ctx); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.errs = append(c.errs, err)
				c.mu.Unlock()
				return
			}
		}
	})
}

// end stops everything, and returns what went wrong.
func (c *background) end() error {
	for _, stop := range c.stops {
		stop()
	}
	c.all.Wait()
	c.stops = nil
	return errors.Join(c.errs...)
}

// burst is a hostility in which all idle pods are to get a burst at its begin: thousands of writes, with a claim in the
// journal and a line in the log each.
type burst struct{}

func (burst) configure(b *bench, begun bool) string {
	if begun {
		return b.config(strategy.Auto, "", "")
	}
	return b.config(strategy.None, "", "")
}
