package main

import (
	"fmt"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/journal/leftover"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
	"plimsoll/internal/workload"
)

// offlineStatus finds the values of ours that are still in the kernel's files although no agent runs.
func offlineStatus(g *globals, now time.Time) (s report.Status, err error) {
	state, err := journal.Load(g.StateDir)
	if err != nil {
		return report.Status{}, err
	}
	boot, err := journal.BootID()
	if err != nil {
		return report.Status{}, fmt.Errorf("read the boot ID: %w", err)
	}
	kernel, err := sysfs.NewHost("/").Release()
	if err != nil {
		return report.Status{}, err
	}
	defer func() { s = s.Reached(g.flags()) }()
	s = report.Status{Schema: report.StatusSchema, Version: version, Now: now, Mode: report.Offline, Kernel: kernel,
		Cgroup: "?", Problems: state.Notes, Node: report.Node{State: "unknown"}}
	if len(state.Entries) > 0 && state.BootID != boot {
		s.Problems = append(s.Problems, report.ProblemOtherBoot)
		return s, nil
	}
	if locked := g.Holder(); locked != nil && locked.Stranger {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemLocked, locked, locked.Hint()))
	}
	dir, tree, err := g.OpenTree()
	if err != nil {
		return s, err
	}
	defer dir.Close()
	s.Cgroup = tree.Version().String()
	s.Containers = leftover.Containers(state.Entries,
		func(id workload.ID) (cpu.Bandwidth, error) { return leftover.Bandwidth(tree, id) })
	for _, c := range s.Containers {
		if c.Quota.Changed || c.Burst.Changed {
			s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemLeftLimit, c.Cgroup))
		}
	}
	w := apply.New(tree, nil, nil)
	w.Tasks, w.Root = &task.Kernel{}, "/"
	s.Problems = append(s.Problems, leftover.Others(w, state.Entries)...)
	return s, nil
}
