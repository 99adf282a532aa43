package experiment

import (
	"context"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
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
	Round    int
	Load     *load.Outcome
	Usage    sample.Usage  // of the server's group
	Lost     time.Duration // wall time lost to throttling
	NodeUse  time.Duration // CPU time that the whole machine used
	GaveBack time.Duration // how long a raised quota outlived the last answer; 0 when none was raised then
}

// Observe takes readings of a group until the load, which runs meanwhile, has ended.
func (g *Groups) Observe(group string, period time.Duration, run func() *load.Outcome) (Slot, error) {
	first, err := g.reading(group)
	if err != nil {
		return Slot{}, err
	}
	before, err := g.tree.Usage("/")
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
	after, failed := g.tree.Usage("/")
	if err == nil {
		err = failed
	}
	s.NodeUse = after - before
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
