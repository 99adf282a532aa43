package main

import (
	"context"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/probe"
)

// edgePatience is for how many periods the timer of a group's limit is waited for: it is stopped while the group is idle.
const edgePatience = 20

// edge is an instant at which a period of the group's limit begins, from the kernel. Zero where that is not known, or
// where there is no limit: then the recording has periods of its own.
func edge(ctx context.Context, tree *cgroup.Tree, group string, period time.Duration) time.Time {
	inode, err := tree.Inode(group)
	if b, unlimited := tree.Bandwidth(group); err != nil || unlimited != nil || !b.Limited() {
		return time.Time{}
	}
	p, err := probe.Open(probe.Options{Use: true})
	if err != nil {
		return time.Time{}
	}
	defer p.Close()
	if p.Watch([]uint64{inode}) != nil {
		return time.Time{}
	}
	for range 4 * edgePatience {
		if t, ok := p.Totals(inode); ok && t.PeriodEnd > 0 {
			return time.Now().Add(t.PeriodEnd - probe.Monotonic())
		}
		select {
		case <-ctx.Done():
			return time.Time{}
		case <-time.After(period / 4):
		}
	}
	return time.Time{}
}
