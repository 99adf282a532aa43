package main

import (
	"context"
	"errors"
	"os"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/doctor"
	"plimsoll/internal/parallelism/inspect"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
)

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
	ctx, cancel := context.WithTimeout(ctx, inspect.NodeTime)
	defer cancel()
	here, err := g.containerIndex(ctx, tree, file)
	if err != nil {
		return nil
	}
	s := &doctor.Suspects{List: []doctor.Suspect{}}
	r := inspect.Runtimes{Tree: tree, Online: online, Reader: inspect.New("/proc")}
	for i, c := range here.Containers() {
		if i >= inspect.Most || ctx.Err() != nil {
			s.Left++
			continue
		}
		p := r.Of(ctx, c)
		if p == nil {
			continue
		}
		s.Looked++
		p.Next = report.Called(p.Next, g.flags())
		if p.Unusable {
			s.List = append(s.List, doctor.Suspect{Name: c.Name, Cgroup: c.Cgroup, Parallelism: *p})
		}
	}
	if s.Looked+s.Left == 0 {
		return nil
	}
	return s
}
