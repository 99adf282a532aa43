package meter

import (
	"fmt"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/hint"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
)

// Uncounted measures the CPU time of groups that no counter of the kernel has: on cgroup v1 those that are in the cpu
// hierarchy and not in that of cpuacct. The programs of `diagnose` do it, at each switch of a thread.
type Uncounted struct {
	meter  *Meter
	looked time.Time
}

// Measure loads the programs for these groups.
func Measure(tree *cgroup.Tree, groups []report.Container) (*Uncounted, error) {
	m, err := open(tree, sysfs.NewHost("/"), groups, nil, runq.Options{Nameless: true})
	if err != nil {
		return nil, hint.With(fmt.Errorf("nothing counts the CPU time of %s, and it cannot be measured: %w",
			groups[0].Cgroup, err), probe.Explain(err)+"; or, on cgroup v1, make the group in the cpuacct hierarchy "+
			"too")
	}
	return &Uncounted{meter: m, looked: time.Now()}, nil
}

// Close removes the programs.
func (u *Uncounted) Close() error {
	if u == nil {
		return nil
	}
	return u.meter.probe.Close()
}

// Used reads the CPU time of a group since the programs were loaded.
func (u *Uncounted) Used(group string) (time.Duration, error) {
	if time.Since(u.looked) >= lookEvery { // groups beside them come and go, and are not theirs
		u.looked = time.Now()
		u.meter.numberNeighbours()
	}
	inode, err := u.meter.tree.Inode(group)
	if err != nil {
		return 0, err
	}
	s := u.meter.subject(group, inode)
	if s == nil {
		return 0, fmt.Errorf("%s: another group has taken its place", group)
	}
	sums, err := u.meter.probe.Read(s.slot, time.Second)
	return sums.Running, err
}
