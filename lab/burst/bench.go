package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/lab/experiment"
)

const (
	limitCPUs   = 0.5
	utilization = 0.45
	mostAtOnce  = 3
	perSlot     = 2 // bursts of each size
	work        = 40 * time.Millisecond
	workSlack   = work / 20
	firstSize   = 1 << 20
	openAtOnce  = 16
)

// bench is a measurement under way.
type bench struct {
	groups *experiment.Groups
	group  string // the service's
	limit  cpu.Bandwidth
	server *experiment.Service
	client *load.Client
	agent  *experiment.Agent
	size   int           // of a request
	cost   time.Duration // CPU time of a request
	rng    *rand.Rand
}

// burst is what was measured of one.
type burst struct {
	mode   experiment.Mode
	round  int
	atOnce int
	took   time.Duration // until all were answered
	agent  time.Duration // CPU time of the agent meanwhile
}

func open(ctx context.Context, s settings) (b *bench, err error) {
	b = &bench{limit: experiment.Limited(limitCPUs), server: &experiment.Service{Binary: s.plimsoll}, client: load.NewClient(openAtOnce),
		rng: rand.New(rand.NewPCG(s.seed, 0))}
	if b.groups, err = experiment.NewGroups(s.cgroupRoot, "burst"); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, s); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) prepare(ctx context.Context, s settings) (err error) {
	if b.group, err = b.groups.Add("web"); err != nil {
		return err
	}
	if err := b.server.Start(func(pid int) error { return b.groups.Enter(b.group, pid) }); err != nil {
		return err
	}
	b.size, b.cost, err = load.Calibrate(work, workSlack, firstSize, func(size int) (time.Duration, error) {
		return b.groups.Cost(ctx, b.group, func() error { return b.client.Get(ctx, b.server.URL(size)) })
	})
	if err != nil && !errors.Is(err, load.ErrUnsettled) { // its cost is part of the result
		return err
	}
	if err := b.groups.Limit(b.group, b.limit); err != nil {
		return err
	}
	b.agent, err = experiment.StartAgent(experiment.Setup{Binary: s.plimsoll, Root: s.cgroupRoot}, b.groups)
	return err
}

// close ends what was started, last first: the agent restores while the groups are still there.
func (b *bench) close() error {
	b.client.Close()
	var agent error
	if b.agent != nil {
		agent = b.agent.Stop()
	}
	return errors.Join(agent, b.server.Stop(), b.groups.Close())
}

// slot measures one mode in one round. The limit is removed only while the agent is passive.
func (b *bench) slot(ctx context.Context, mode experiment.Mode, round int) (list []burst, err error) {
	if err := b.agent.Apply(mode.Policy(), []string{b.group}, b.limit); err != nil {
		return nil, err
	}
	if mode.Unlimited() {
		if err := b.groups.Limit(b.group, cpu.Bandwidth{Quota: cpu.Unlimited}); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.groups.Limit(b.group, b.limit)) }()
	}
	for i := range perSlot * mostAtOnce {
		one := burst{mode: mode, round: round, atOnce: 1 + i%mostAtOnce}
		if err := experiment.Pause(ctx, b.idle(one.atOnce)); err != nil {
			return nil, err
		}
		if err := b.send(ctx, &one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// idle is how long the service is idle before so many requests: at another phase of the period each time.
func (b *bench) idle(atOnce int) time.Duration {
	mean := time.Duration(float64(atOnce) * float64(b.cost) / (limitCPUs * utilization))
	return mean - b.limit.Period/2 + time.Duration(b.rng.Int64N(int64(b.limit.Period)))
}

// send sends the requests of a burst and waits for all answers.
func (b *bench) send(ctx context.Context, one *burst) error {
	before, err := b.agent.Child().Used()
	if err != nil {
		return err
	}
	failed := make([]error, one.atOnce)
	var wait sync.WaitGroup
	begin := time.Now()
	for i := range failed {
		wait.Go(func() { failed[i] = b.client.Get(ctx, b.server.URL(b.size)) })
	}
	wait.Wait()
	one.took = time.Since(begin)
	after, err := b.agent.Child().Used()
	one.agent = after - before
	return errors.Join(append(failed, err)...)
}
