package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/load"
)

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
