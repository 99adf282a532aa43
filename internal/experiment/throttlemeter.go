package experiment

import (
	"errors"

	"plimsoll/internal/probe"
)

// throttleMeter measures for how long a group is throttled. A throttle that is ended within its period is not counted in
// nr_throttled, and throttled_time adds up CPUs that are throttled together; the sum of throttle events is
// exact. nil: the counters must do.
type throttleMeter struct {
	probe *probe.Probe
	inode uint64
}

// watchThrottles begins to measure. The error says why there are no throttle events.
func (g *Groups) watchThrottles(group string) (*throttleMeter, error) {
	inode, err := g.tree.Inode(group)
	if err != nil {
		return nil, err
	}
	p, err := probe.Open(probe.Options{Groups: 1})
	if err != nil {
		return nil, err
	}
	if err := p.Watch([]uint64{inode}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &throttleMeter{p, inode}, nil
}

// totals are those of the group so far.
func (s *throttleMeter) totals() probe.Totals {
	if s == nil {
		return probe.Totals{}
	}
	t, _ := s.probe.Totals(s.inode) // it is watched
	return t
}

func (s *throttleMeter) close() error {
	if s == nil {
		return nil
	}
	return s.probe.Close()
}
