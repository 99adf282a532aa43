package main

import (
	"fmt"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
)

// uncounted measures the CPU time of groups that no counter of the kernel has: on cgroup v1 those that are in the cpu
// hierarchy and not in that of cpuacct. The programs of `diagnose` do it, at each switch of a thread.
type uncounted struct {
	*meter
	looked time.Time
}

// measure loads the programs for these groups.
func measure(tree *cgroup.Tree, groups []report.Container) (*uncounted, error) {
	o, err := newMeter(tree, sysfs.NewHost("/"), groups, nil, runq.Options{Nameless: true})
	if err != nil {
		return nil, withHint(fmt.Errorf("nothing counts the CPU time of %s, and it cannot be measured: %w", groups[0].Cgroup, err),
			probe.Explain(err)+"; or, on cgroup v1, make the group in the cpuacct hierarchy too")
	}
	return &uncounted{meter: o, looked: time.Now()}, nil
}

// close removes the programs.
func (u *uncounted) close() error {
	if u == nil {
		return nil
	}
	return u.probe.Close()
}

// used reads the CPU time of a group since the programs were loaded.
func (u *uncounted) used(group string) (time.Duration, error) {
	if time.Since(u.looked) >= lookEvery { // groups beside them come and go, and are not theirs
		u.looked = time.Now()
		u.numberNeighbours()
	}
	inode, err := u.tree.Inode(group)
	if err != nil {
		return 0, err
	}
	s := u.subject(group, inode)
	if s == nil {
		return 0, fmt.Errorf("%s: another group has taken its place", group)
	}
	sums, err := u.probe.Read(s.slot)
	return sums.Running, err
}
