package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Bounds of each side, so that readers cannot cost the agent more than a fixed amount of memory.
const (
	maxAtWork  = 4  // requests for which an answer is rendered
	maxQueued  = 16 // requests that wait for that
	maxWriting = 32 // answers that are being written

	// answerTime is how long an answer may take to be written. Where all places are taken, the one that is written
	// longest is cut off after writeGrace.
	answerTime = 10 * time.Second
	writeGrace = time.Second
	retryAfter = time.Second
)

// side is one of the two ways to reach the server, over TCP or through the control socket. Each has bounds of its own,
// so that readers over TCP do not keep the owner of the socket from an answer.
type side struct {
	places    chan struct{} // one for each request that is at work or waits
	work      chan struct{} // one for each request at work
	rendering chan struct{} // one answer at a time
	packer    packer
	writing   writers
	dryRuns   dryRuns
}

// newSide makes a side. After a dry run there is a pause of so many times its duration before the next one.
func newSide(now func() time.Time, pause int) *side {
	return &side{places: make(chan struct{}, maxAtWork+maxQueued), work: make(chan struct{}, maxAtWork),
		rendering: make(chan struct{}, 1), writing: writers{now: now}, dryRuns: dryRuns{now: now, pause: pause}}
}

// busy is the answer to a request beyond the bounds of a side.
func busy(what string) *Error {
	return &Error{Msg: what, Code: http.StatusServiceUnavailable, retry: retryAfter,
		Advice: "other readers are being served; try again in a second"}
}

// page waits for this request's turn, and returns the answer of the next snapshot. All requests for that answer share
// it. The place at work is free again before the answer is written, so a slow reader takes none.
func (s *Server) page(ctx context.Context, d *side, v view) (*page, error) {
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	default:
		return nil, busy("too many requests wait for an answer")
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	next := s.snapshots.join() // before the wait: all waiting requests share it
	select {
	case d.work <- struct{}{}:
		defer func() { <-d.work }()
	case <-ctx.Done():
		return nil, s.silent()
	}
	status, err := s.await(ctx, next)
	if err != nil {
		return nil, err
	}
	p, first := next.page(d, v)
	if first {
		d.render(p, status)
	}
	<-p.done
	return p, p.err
}

// writers are the answers that are being written on a side, the first one first.
type writers struct {
	now  func() time.Time
	mu   sync.Mutex
	list []*writer
}

type writer struct {
	since time.Time
	cut   func()
}

// begin takes a place for an answer; cut has to end the writing soon. Where all places are taken, the oldest answer is
// cut off, unless it began only now: then there is no place.
func (w *writers) begin(cut func()) (end func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if len(w.list) == maxWriting {
		first := w.list[0]
		if now.Sub(first.since) < writeGrace {
			return nil, false
		}
		w.list = w.list[1:]
		first.cut()
	}
	own := &writer{now, cut}
	w.list = append(w.list, own)
	return func() { w.end(own) }, true
}

func (w *writers) end(own *writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.list {
		if other == own {
			w.list = append(w.list[:i:i], w.list[i+1:]...)
			return
		}
	}
}
