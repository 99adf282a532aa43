package main

import (
	"context"
	"errors"
	"os"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/doctor"
	"plimsoll/internal/parallelism"
	"plimsoll/internal/parallelism/inspect"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
)

// Bounds of looking at runtimes: of one container, and for doctor of the whole node.
const (
	inspectTime     = 200 * time.Millisecond
	inspectNodeTime = time.Second
	mostInspected   = 64 // containers
	mostNested      = 64 // groups of a container
)

// runtimes judges whether the runtimes of containers can use a burst.
type runtimes struct {
	tree   *cgroup.Tree
	online cpu.Set
	reader inspect.Reader
}

// of is nil where there is nothing to judge.
func (r runtimes) of(ctx context.Context, c report.Container) *report.Parallelism {
	b, err := r.tree.Bandwidth(c.Cgroup)
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
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	list, unread := r.reader.Read(ctx, r.groups(c.Cgroup, limit.CPUs()))
	most := parallelism.Most(limit, policyOf(c), burst).On(len(allowed(r.tree, r.online, c.Cgroup)))
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
func (r runtimes) groups(container string, limit float64) []inspect.Group {
	list := []inspect.Group{}
	var walk func(group string)
	walk = func(group string) {
		if len(list) == mostNested {
			return
		}
		one := inspect.Group{Limit: limit, Nested: group != container}
		if one.Nested {
			b, err := r.tree.Bandwidth(group)
			if err != nil {
				b = cpu.Bandwidth{Quota: cpu.Unlimited}
			}
			one.Limit = b.CPUs()
		}
		one.PIDs, _ = r.tree.Processes(group) // a threaded group refuses: its processes are those of the group above
		list = append(list, one)
		children, _ := r.tree.Children(group) // it is gone
		for _, child := range children {
			walk(child)
		}
	}
	walk(container)
	return list
}

// runtimesHere looks at the containers of this node; nil where none can be looked at. Without a file the strategies are
// those of the agent, if one runs.
func (g *globals) runtimesHere(ctx context.Context, dir *cgroup.Dir, file *config.File) *doctor.Suspects {
	tree, err := cgroup.Detect(dir)
	online, err2 := sysfs.NewHost("/").Online()
	if os.Geteuid() != 0 || errors.Join(err, err2) != nil {
		return nil
	}
	if file == nil {
		file = &config.File{}
	}
	ctx, cancel := context.WithTimeout(ctx, inspectNodeTime)
	defer cancel()
	here, err := g.containerIndex(ctx, tree, file)
	if err != nil {
		return nil
	}
	s := &doctor.Suspects{List: []doctor.Suspect{}}
	r := runtimes{tree: tree, online: online, reader: inspect.New("/proc")}
	for i, c := range here.containers() {
		if i >= mostInspected || ctx.Err() != nil {
			s.Left++
			continue
		}
		p := r.of(ctx, c)
		if p == nil {
			continue
		}
		s.Looked++
		if p.Unusable {
			s.List = append(s.List, doctor.Suspect{Name: c.Name, Cgroup: c.Cgroup, Parallelism: *p})
		}
	}
	if s.Looked+s.Left == 0 {
		return nil
	}
	return s
}
