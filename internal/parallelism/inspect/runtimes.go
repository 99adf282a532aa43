package inspect

import (
	"context"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/parallelism"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Bounds of looking at runtimes: of one container, and of a whole node.
const (
	containerTime = 200 * time.Millisecond
	NodeTime      = time.Second
	Most          = 64 // containers
	mostNested    = 64 // groups of a container
)

// Runtimes judges whether the runtimes of containers can use a burst.
type Runtimes struct {
	Tree   *cgroup.Tree
	Online cpu.Set
	Reader Reader
}

// Of is nil where there is nothing to judge.
func (r Runtimes) Of(ctx context.Context, c report.Container) *report.Parallelism {
	b, err := r.Tree.Bandwidth(c.Cgroup)
	if err != nil {
		return nil // it is gone, or has no limit of its own
	}
	limit, burst := b, b.Burst
	if c.Limit > 0 && c.Period > 0 { // the agent knows what was declared, and may have raised it
		limit = cpu.Bandwidth{Quota: c.Limit, Period: c.Period}
	}
	if !limit.Limited() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, containerTime)
	defer cancel()
	list, unread := r.Reader.Read(ctx, r.groups(c.Cgroup, limit.CPUs()))
	most := parallelism.Most(limit, policyOf(c), burst).On(len(r.Tree.AllowedCPUs(c.Cgroup, r.Online)))
	return parallelism.Decide(parallelism.Container{Limit: limit.CPUs(), Burst: most, Processes: list, Unread: unread})
}

// policyOf is a container's strategy. A container that nobody has configured has the default one.
func policyOf(c report.Container) strategy.Strategy {
	if c.Strategy.Policy == "" {
		return strategy.Default()
	}
	return c.Strategy
}

// groups are the container's group, and those inside it. Each has the limit that a process in it reads.
func (r Runtimes) groups(container string, limit float64) []Group {
	list := []Group{}
	var walk func(group string)
	walk = func(group string) {
		if len(list) == mostNested {
			return
		}
		one := Group{Limit: limit, Nested: group != container}
		if one.Nested {
			b, err := r.Tree.Bandwidth(group)
			if err != nil {
				b = cpu.Bandwidth{Quota: cpu.Unlimited}
			}
			one.Limit = b.CPUs()
		}
		one.PIDs, _ = r.Tree.Processes(group) // a threaded group refuses: its processes are those of the group above
		list = append(list, one)
		children, _ := r.Tree.Children(group) // it is gone
		for _, child := range children {
			walk(child)
		}
	}
	walk(container)
	return list
}
