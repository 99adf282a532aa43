package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/sysfs"
	"plimsoll/lab/frame"
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

// add finds the tasks of a group.
func (w *watch) add(tree *cgroup.Tree, group string) {
	for _, tid := range frame.Must(tree.Tasks(group)) {
		w.tasks = append(w.tasks, watched{tid, frame.Must(os.Open(fmt.Sprintf("/proc/%d/schedstat", tid)))})
	}
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
	var took time.Duration
	before, after, err := experiment.Around(w.now, func() error {
		err := send(ctx)
		took = time.Since(due)
		return err
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts = append(t.parts, part{took, after.since(before)})
	return nil
}

// mean is that of the slowest requests.
func (t *tail) mean() split {
	n := int(slowest*float64(len(t.parts)) + 0.5)
	sorted := slices.SortedFunc(slices.Values(t.parts), func(a, b part) int { return int(b.took - a.took) })
	var took, ran, waited time.Duration
	for _, p := range sorted[:n] {
		took, ran, waited = took+p.took, ran+p.ran, waited+p.waited
	}
	of := func(d time.Duration) float64 { return experiment.Milliseconds(d) / float64(max(n, 1)) }
	return split{of(took), of(ran), of(waited), of(took - ran - waited)}
}

// request spreads requests over the connections, and splits the time of each where a tail is given.
func (b *bench) request(ctx context.Context, due []time.Duration, w *watch, t *tail) *load.Outcome {
	return load.RunPrecisely(ctx, due, load.Bounds{Timeout: timeout, Open: openAtOnce},
		func(ctx context.Context) error {
			n := int(b.next.Add(1))
			get := func(ctx context.Context) error { return b.clients[n%len(b.clients)].Get(ctx, b.server.URL(0)) }
			if t == nil {
				return get(ctx)
			}
			return t.timed(ctx, w, get)
		})
}
