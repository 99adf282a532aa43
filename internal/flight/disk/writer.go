package disk

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"plimsoll/internal/flight"
)

// Writer writes batches in a goroutine of its own. Offer never waits.
type Writer struct {
	options Options
	now     func() time.Time
	log     *slog.Logger
	queue   chan flight.Batch

	mu    sync.Mutex
	state State
}

// State is what a writer has done.
type State struct {
	Files   int
	Bytes   int64
	Written int64  // periods
	Dropped int64  // periods: the disk is full or failing, or the writer was behind
	Damaged int64  // files that could not be read when they were merged
	Problem string // why the last batch was not written; "": it was
}

// queueLen is how many minutes may wait for a slow disk.
const queueLen = 4

// NewWriter makes a writer, which Run starts.
func NewWriter(o Options, now func() time.Time, log *slog.Logger) *Writer {
	return &Writer{options: o, now: now, log: log, queue: make(chan flight.Batch, queueLen)}
}

// Offer gives a batch to the writer; it is dropped and counted where too many wait.
func (w *Writer) Offer(b flight.Batch) {
	select {
	case w.queue <- b:
	default:
		w.Drop(b.Periods())
	}
}

// Drop counts periods that are in no batch.
func (w *Writer) Drop(periods int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Dropped += periods
}

// State is what has been done until now.
func (w *Writer) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Run writes until the context ends, and then what waits.
func (w *Writer) Run(ctx context.Context) {
	var ring *Ring
	for {
		select {
		case b := <-w.queue:
			ring = w.write(ring, b)
			continue
		case <-ctx.Done():
		}
		select {
		case b := <-w.queue:
			ring = w.write(ring, b)
		default:
			return
		}
	}
}

// write writes a batch, and opens the ring where that has not succeeded yet.
func (w *Writer) write(ring *Ring, b flight.Batch) *Ring {
	var err error
	if ring == nil {
		ring, err = OpenRing(w.options)
	}
	before := uint64(0)
	if err == nil {
		before = ring.next
		err = ring.Write(b, w.now())
	}
	written := err == nil || ring != nil && ring.next > before // what failed was the merge
	w.note(ring, b, written, err)
	return ring
}

func (w *Writer) note(ring *Ring, b flight.Batch, written bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.state
	if ring != nil {
		s.Files, s.Bytes, s.Damaged = ring.Files(), ring.Bytes(), ring.Damaged()
	}
	if written {
		s.Written += b.Periods()
	} else {
		s.Dropped += b.Periods()
	}
	if err == nil {
		if s.Problem != "" {
			w.log.Info("the record is written again", "dir", w.options.Dir, "dropped_periods", s.Dropped)
		}
		s.Problem = ""
		return
	}
	if s.Problem == "" {
		w.log.Warn("the record of periods is not written; the agent goes on without it", "dir", w.options.Dir, "error",
			err)
	}
	s.Problem = err.Error()
}
