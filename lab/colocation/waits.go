package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/sysfs"
)

// taskTimes is what the kernel counts of tasks: how long they ran, and how long they waited on a run queue for it.
type taskTimes struct{ ran, waited time.Duration }

func (s taskTimes) since(before taskTimes) taskTimes {
	return taskTimes{s.ran - before.ran, s.waited - before.waited}
}

// watch reads the times of the tasks of a group, often and fast. A worker of nginx lives as long as nginx, so nothing
// that was counted is lost.
type watch struct{ tasks []watched }

type watched struct {
	pid  int
	stat *os.File // /proc/PID/schedstat
}

func newWatch(tree *cgroup.Tree, group string) (*watch, error) {
	tids, err := tree.Tasks(group)
	w := &watch{}
	for _, tid := range tids {
		f, failed := os.Open(fmt.Sprintf("/proc/%d/schedstat", tid))
		if err = errors.Join(err, failed); failed == nil {
			w.tasks = append(w.tasks, watched{tid, f})
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// now sums over the tasks.
func (w *watch) now() (sum taskTimes, err error) {
	var buf [64]byte
	for _, t := range w.tasks {
		ran, err := experiment.CPUTime(t.pid)
		if err != nil {
			return sum, err
		}
		n, err := t.stat.ReadAt(buf[:], 0)
		if n == 0 {
			return sum, err
		}
		_, waited, err := sysfs.ParseSchedstat(buf[:n])
		if err != nil {
			return sum, fmt.Errorf("%s: %w", t.stat.Name(), err)
		}
		sum.ran += ran
		sum.waited += waited
	}
	return sum, nil
}

func (w *watch) close() error {
	return experiment.Each(w.tasks, func(t watched) error { return t.stat.Close() })
}

// slowest is the share of requests whose time is split: p99 is the middle one of them.
const slowest = 0.02

// part is where the time of one request went. The requests come one after the other unless one takes longer than the
// gap between them, so that what nginx does meanwhile it does for this one.
type part struct {
	took time.Duration // from when it was due
	taskTimes
}

// tail collects the parts of the requests of a load.
type tail struct {
	mu    sync.Mutex
	parts []part
}

// timed sends a request and splits its time. A request's context ends timeout after it was due.
func (t *tail) timed(ctx context.Context, w *watch, send func(context.Context) error) error {
	ends, _ := ctx.Deadline()
	due := ends.Add(-timeout)
	before, err := w.now()
	if err != nil {
		return err
	}
	if err := send(ctx); err != nil {
		return err
	}
	p := part{took: time.Since(due)}
	after, err := w.now()
	if err != nil {
		return err
	}
	p.taskTimes = after.since(before)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts = append(t.parts, p)
	return nil
}

// mean is that of the slowest requests.
func (t *tail) mean() part {
	n := int(slowest*float64(len(t.parts)) + 0.5)
	if n == 0 {
		return part{}
	}
	sorted := slices.SortedFunc(slices.Values(t.parts), func(a, b part) int { return int(b.took - a.took) })
	var sum part
	for _, p := range sorted[:n] {
		sum.took, sum.ran, sum.waited = sum.took+p.took, sum.ran+p.ran, sum.waited+p.waited
	}
	return part{sum.took / time.Duration(n), taskTimes{sum.ran / time.Duration(n), sum.waited / time.Duration(n)}}
}

// request spreads requests over the connections, and splits the time of each where a tail is given.
func (b *bench) request(ctx context.Context, due []time.Duration, w *watch, t *tail) *load.Outcome {
	return load.RunPrecisely(ctx, due, load.Bounds{Timeout: timeout, Open: openAtOnce}, func(ctx context.Context) error {
		n := int(b.next.Add(1))
		get := func(ctx context.Context) error { return b.clients[n%len(b.clients)].Get(ctx, b.server.URL(0)) }
		if t == nil {
			return get(ctx)
		}
		return t.timed(ctx, w, get)
	})
}
