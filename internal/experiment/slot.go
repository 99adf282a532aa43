package experiment

import (
	"context"
	"errors"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
	"plimsoll/internal/probe"
	"plimsoll/internal/sample"
)

const (
	look       = 100 * time.Millisecond // how often counters are read in a slot
	timeout    = 30 * time.Second       // of a request
	openAtOnce = 256
	giveBack   = 5 * time.Second // how long a raised quota may outlive its demand
)

// Slot is what was measured in one mode in one round.
type Slot struct {
	Mode     Mode
	Load     *load.Outcome
	Usage    sample.Usage  // of the server's group
	Lost     time.Duration // wall time lost to throttling
	Ended    int64         // throttles that ended, with throttle events
	NodeUse  time.Duration // CPU time that the whole machine used
	Offline  time.Duration // the part of it that was offline work
	Writes   int64         // of the agent
	GaveBack time.Duration // how long a raised quota outlived the last answer; 0 when none was raised then
}

// sample takes readings of the server's group until the load, which runs meanwhile, has ended.
func (r *run) sample(ctx context.Context, send func() *load.Outcome) (s Slot, err error) {
	before, after, err := Around(func() (around, error) { return r.around(ctx) }, func() (err error) {
		s, err = r.groups.watch(r.group, r.limit.Period, send)
		return err
	})
	s.NodeUse, s.Offline, s.Writes = after.node-before.node, after.offline-before.offline, after.writes-before.writes
	if r.still != nil {
		s.Lost, s.Ended = after.still.Wall-before.still.Wall, after.still.Ends-before.still.Ends
	}
	return s, err
}

// around are the counters before and after a slot.
type around struct {
	node, offline time.Duration
	writes        int64
	still         probe.Totals
}

func (r *run) around(ctx context.Context) (around, error) {
	a := around{still: r.still.totals()}
	var err error
	if a.node, err = r.groups.tree.Usage("/"); err != nil {
		return a, err
	}
	if a.offline, err = r.offline.Used(); err != nil || r.agent == nil {
		return a, err
	}
	status, err := r.agent.Status(ctx)
	a.writes = Writes(status)
	return a, err
}

// watch takes readings of a group until the load, which runs meanwhile, has ended. The time lost is what the counters
// tell.
func (g *Groups) watch(group string, period time.Duration, run func() *load.Outcome) (Slot, error) {
	first, err := g.reading(group)
	if err != nil {
		return Slot{}, err
	}
	ended := make(chan *load.Outcome, 1)
	go func() { ended <- run() }()
	var s Slot
	tick := time.NewTicker(look)
	defer tick.Stop()
	for last := first; ; {
		select {
		case <-tick.C:
		case s.Load = <-ended:
		}
		next, failed := g.reading(group)
		if failed != nil {
			err = failed // the load is let run to its end all the same
		} else {
			s.Lost += sample.Between(last, next).ThrottledWall(period)
			last = next
		}
		if s.Load != nil {
			s.Usage = sample.Between(first, last)
			break
		}
	}
	return s, err
}

func (g *Groups) reading(group string) (sample.Reading, error) {
	c, err := g.tree.Counters(group)
	return sample.Reading{At: time.Now(), Counters: c}, err
}

// awaitLimit waits until a raised quota is back at its limit, and says how long that took.
func (g *Groups) awaitLimit(ctx context.Context, group string, limit cpu.Bandwidth) (time.Duration, error) {
	start := time.Now()
	for {
		b, err := g.tree.Bandwidth(group)
		took := time.Since(start)
		if err != nil || b.Quota <= limit.Quota || took > 2*giveBack || ctx.Err() != nil {
			if took < look {
				took = 0
			}
			return took, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// WatchThrottles has the kernel report the throttles of groups, or add them up.
// The error says why there are no throttle events.
func WatchThrottles(o probe.Options, groups ...uint64) (*probe.Probe, error) {
	p, err := probe.Open(o)
	if err != nil {
		return nil, WithHint(err, probe.Explain(err))
	}
	if err := p.Watch(groups); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// throttles measures for how long a group is throttled. A throttle that is ended within its period is not counted in
// nr_throttled, and throttled_time adds up CPUs that are throttled together; the sum of throttle events is
// exact. nil: the counters must do.
type throttles struct {
	*probe.Probe
	inode uint64
}

// watchThrottles begins to measure.
func (g *Groups) watchThrottles(group string) (*throttles, error) {
	inode, err := g.tree.Inode(group)
	if err != nil {
		return nil, err
	}
	p, err := WatchThrottles(probe.Options{Groups: 1}, inode)
	if err != nil {
		return nil, err
	}
	return &throttles{p, inode}, nil
}

// totals are those of the group so far.
func (t *throttles) totals() probe.Totals {
	if t == nil {
		return probe.Totals{}
	}
	sum, _ := t.Totals(t.inode) // it is watched
	return sum
}
