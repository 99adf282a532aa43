package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
	"plimsoll/lab/kubeapi"
)

// tenants are the pods of one namespace, each of which is throttled in every period and may use a millisecond a second:
// a thousand of them keep one CPU busy. Each victim is a tenant of its own: it has no namespace.
type tenants struct {
	api       *kubeapi.Server
	groups    *frame.Bench
	made      []pod
	processes []*experiment.Child
	starts    *os.File // they spin as soon as it is closed
}

const (
	// mostSpin is the CPU time that one of them may use, should the bench be killed.
	mostSpin = 20 * time.Second
	// firstTenant is the number of the first of these pods; the idle ones have lower numbers.
	firstTenant = 1 << 20
)

func (t *tenants) configure(b *bench, _ bool) string { return b.config(strategy.Auto, "", "") }

func (t *tenants) prepare(ctx context.Context, b *bench, s *experiment.Setup) error {
	t.groups = b.Bench
	waits, starts, err := os.Pipe()
	if err != nil {
		return err
	}
	defer waits.Close()
	t.starts = starts
	list := b.idlePods()
	for i := range b.Throttling {
		p, err := b.makePod(firstTenant + i)
		if err != nil {
			return err
		}
		t.made, list = append(t.made, p), append(list, p.listed("attacker", 1))
		spinner, err := b.Spinner(p.inner, mostSpin, waits)
		if err != nil {
			return err
		}
		t.processes = append(t.processes, spinner)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for _, p := range t.made { // that have started: with a millisecond a second that takes ten of them
		if err := b.LimitEvery(p.inner, cpu.Bandwidth{Quota: time.Millisecond, Period: time.Second}); err != nil {
			return err
		}
	}
	t.api, err = serve(b, s, list)
	return err
}

func (t *tenants) begin(context.Context, *bench, *experiment.Agent) error { return t.starts.Close() }

// end ends all of them at once: a process that is killed while its group is throttled dies in the next period.
func (t *tenants) end() error {
	if t.starts != nil {
		_ = t.starts.Close() // at the begin already
	}
	var ending errgroup.Group
	for _, c := range t.processes {
		ending.Go(func() error { return c.Stop(0) })
	}
	err := errors.Join(ending.Wait(), end(t.api))
	for _, p := range t.made {
		err = errors.Join(err, t.groups.Remove(p.inner), t.groups.Remove(p.group))
	}
	t.processes, t.made = nil, nil
	return err
}
