package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
)

// requesters are groups that ask for more exclusive CPUs than the machine has. All are refused, again at each look.
// Groups that come and go have the agent look all the time, as containers do that restart in a loop.
type requesters struct {
	background
	processes []*experiment.Child
}

const restartEvery = 50 * time.Millisecond

func (k *requesters) configure(b *bench, begun bool) string {
	asks := ""
	if begun {
		asks = fmt.Sprintf("  - {cgroup: %q, policy: auto, exclusive: true, request: 64}\n", b.Base()+"/ask*")
	}
	return b.config(strategy.Auto, "reserve: {policy: auto}\n", asks)
}

// prepare makes the groups, which nobody looks after yet.
func (k *requesters) prepare(ctx context.Context, b *bench, _ *experiment.Setup) error {
	for i := range b.Asking {
		group, err := b.Add(fmt.Sprintf("ask%d", i))
		if err == nil {
			err = b.Limit(group, cpu.Bandwidth{Quota: podQuota})
		}
		if err != nil {
			return err
		}
		sleeper, err := b.Bench.Groups.Sleeper(group)
		if err != nil {
			return err
		}
		k.processes = append(k.processes, sleeper)
	}
	return context.Cause(ctx)
}

func (k *requesters) begin(ctx context.Context, b *bench, a *experiment.Agent) error {
	if err := a.Configure(k.configure(b, true)); err != nil {
		return err
	}
	k.every(ctx, restartEvery, func(context.Context) error {
		group, err := b.Add("restart")
		if err != nil {
			return err
		}
		return b.Remove(group)
	})
	return nil
}

func (k *requesters) end() error {
	err := k.background.end()
	for _, c := range k.processes {
		err = errors.Join(err, c.Stop(0))
	}
	k.processes = nil
	return err
}
