// Package logqueue keeps a program that logs from waiting for whoever reads its log.
//
// # Problem
//
// The agent logs in the midst of a turn. Standard error may be a pipe that nobody reads: once the pipe is full, a write
// to it blocks, and with it the turn and the answers to throttles.
//
// # Approach
//
// A handler puts each line into a queue of bounded length, and returns. A goroutine formats and writes the lines. A
// line that finds the queue full is dropped and counted, and the number is logged as soon as lines are written again.
//
// # Known limits
//
// A line is formatted after the call that logged it, so its values must not change. Lines that are still in the queue
// when the process is killed are lost.
package logqueue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// capacity is how many lines may wait to be written.
	capacity = 1024
	// endPatience is how long End waits for lines that nobody reads.
	endPatience = time.Second
)

// Queue holds the lines that are not written yet.
type Queue struct {
	lines   chan *line
	dropped atomic.Int64  // since the start
	end     chan struct{} // closed by End
	written chan struct{} // closed after the last line
}

// line is a record and the handler that writes it.
type line struct {
	handler slog.Handler
	record  slog.Record
}

// New starts a queue, which End ends.
func New() *Queue {
	q := &Queue{lines: make(chan *line, capacity), end: make(chan struct{}), written: make(chan struct{})}
	go q.write()
	return q
}

// Over is a handler that passes its records to another handler, through the queue.
func (q *Queue) Over(next slog.Handler) slog.Handler { return handler{next, q} }

// Dropped is the number of lines that found the queue full, since the start.
func (q *Queue) Dropped() int64 { return q.dropped.Load() }

// End waits until all lines are written, but not for ever. Lines that are logged later may be lost.
func (q *Queue) End() {
	close(q.end)
	select {
	case <-q.written:
	case <-time.After(endPatience):
	}
}

// write writes lines until the end, and then the lines that are left.
func (q *Queue) write() {
	defer close(q.written)
	told := int64(0)
	for {
		select {
		case l := <-q.lines:
			told = q.writeLine(l, told)
			continue
		case <-q.end:
		}
		select {
		case l := <-q.lines:
			told = q.writeLine(l, told)
		default:
			return
		}
	}
}

// writeLine writes one line, and before it how many lines were dropped besides those already told of. There is no other
// place to report an error to.
func (q *Queue) writeLine(l *line, told int64) int64 {
	ctx := context.Background()
	dropped := q.Dropped()
	if dropped > told {
		r := slog.NewRecord(l.record.Time, slog.LevelWarn, "lines were dropped from the log: nobody read it in time", 0)
		r.AddAttrs(slog.Int64("lines", dropped-told))
		_ = l.handler.Handle(ctx, r)
	}
	_ = l.handler.Handle(ctx, l.record)
	return dropped
}

// handler puts records into the queue.
type handler struct {
	slog.Handler
	queue *Queue
}

// Handle never waits.
func (h handler) Handle(_ context.Context, r slog.Record) error {
	select {
	case h.queue.lines <- &line{h.Handler, r.Clone()}:
	default:
		h.queue.dropped.Add(1)
	}
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.queue}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.queue}
}

// Named is a handler of a log that adds the name of a container to each line that has its group: the path of a
// container of Docker has 78 letters, and its id is all that it says.
func Named(next slog.Handler, name func(group string) string) slog.Handler { return named{next, name} }

type named struct {
	slog.Handler
	name func(group string) string
}

func (h named) Handle(ctx context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "cgroup" && a.Value.Kind() == slog.KindString {
			name = h.name(a.Value.String())
		}
		return name == ""
	})
	if name != "" {
		r.AddAttrs(slog.String("name", name))
	}
	return h.Handler.Handle(ctx, r)
}

func (h named) WithAttrs(attrs []slog.Attr) slog.Handler {
	return named{h.Handler.WithAttrs(attrs), h.name}
}

func (h named) WithGroup(name string) slog.Handler {
	return named{h.Handler.WithGroup(name), h.name}
}
