package experiment

import (
	"errors"

	"plimsoll/internal/probe"
)

// WatchThrottles has the kernel report the throttles of groups, or add them up. The error says why there are no throttle events.
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
