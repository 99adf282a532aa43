// Package sampler is where a recording (internal/trace) of control groups reads: their CPU time, their throttling and
// their limit, each period of the limit.
//
// Known limits: groups with limits of different periods share no clock, and are refused. A group that no counter of the
// kernel has is measured by programs in the kernel (internal/diagnose/meter).
package sampler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/hint"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/trace"
)

// New reads these groups, until done is called. Those with a limit must share its period.
func New(tree *cgroup.Tree, groups []report.Container) (r trace.Recorder, done func() error, err error) {
	r = trace.Recorder{Period: cpu.DefaultPeriod, Now: time.Now, Wait: trace.Sleep}
	var dark []report.Container
	owner := ""
	for _, c := range groups {
		limit, period, err := limitAndPeriod(tree, c.Cgroup)
		switch limited := !math.IsInf(limit, 1); {
		case err != nil:
			return r, nil, err
		case limited && owner == "":
			r.Period, owner = period, c.Cgroup
		case limited && r.Period != period:
			return r, nil, hint.With(fmt.Errorf("the limit of %s has a period of %s, that of %s one of %s: they "+
				"cannot share a clock", owner, r.Period, c.Cgroup, period), "record them one by one")
		}
		r.Sources = append(r.Sources, trace.Source{Name: c.Name, Limit: limit, LimitNow: limitOf(tree, c.Cgroup),
			Read: reader(tree, c.Cgroup, tree.Usage)})
		if _, err := tree.Usage(c.Cgroup); errors.Is(err, fs.ErrNotExist) {
			dark = append(dark, c)
		}
	}
	online, err := sysfs.NewHost("/").Online()
	if r.CPUs = float64(len(online)); err != nil || len(dark) == 0 {
		return r, func() error { return nil }, err
	}
	u, err := meter.Measure(tree, dark)
	if err != nil {
		return r, nil, err
	}
	for i, c := range groups {
		if slices.ContainsFunc(dark, func(o report.Container) bool { return o.Cgroup == c.Cgroup }) {
			r.Sources[i].Read = reader(tree, c.Cgroup, u.Used)
		}
	}
	return r, u.Close, nil
}

// limitAndPeriod are those of a group. The root has no limit, nor has a group without the controller (v2).
func limitAndPeriod(tree *cgroup.Tree, group string) (cpus float64, period time.Duration, err error) {
	b, err := tree.Bandwidth(group)
	if _, gone := tree.Inode(group); errors.Is(err, fs.ErrNotExist) && gone == nil {
		return math.Inf(1), cpu.DefaultPeriod, nil
	}
	return b.CPUs(), b.Period, err
}

// limitOf reads the limit of a group, in CPUs.
func limitOf(tree *cgroup.Tree, group string) func() (float64, error) {
	return func() (float64, error) {
		cpus, _, err := limitAndPeriod(tree, group)
		return cpus, err
	}
}

// reader reads both counters of a group. usage is where the one of its CPU time is that cpu.stat has not.
func reader(tree *cgroup.Tree, group string, usage func(string) (time.Duration, error)) func() (used,
	throttled time.Duration, err error) {
	return func() (time.Duration, time.Duration, error) {
		c, err := tree.Stat(group)
		if errors.Is(err, fs.ErrNotExist) && group == "/" {
			err = nil // the root on v1 has no cpu.stat
		}
		if err != nil {
			return 0, 0, err
		}
		if !c.HasUsage {
			c.Usage, err = usage(group)
		}
		return c.Usage, c.ThrottledTime, err
	}
}

// edgePatience is for how many periods the timer of a group's limit is waited for:
// it is stopped while the group is idle.
const edgePatience = 20

// Edge is an instant at which a period of the group's limit begins, from the kernel. Zero where that is not known, or
// where there is no limit: then the recording has periods of its own.
func Edge(ctx context.Context, tree *cgroup.Tree, group string, period time.Duration) time.Time {
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
