package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"plimsoll/internal/report"
)

// Bounds of each side, so that readers cannot cost the agent more than a fixed amount of memory.
const (
	maxAtWork  = 4  // requests for which an answer is rendered
	maxQueued  = 16 // requests that wait for that
	maxWriting = 32 // answers that are being written
	// maxOfClient is how many of the places at work and in the queue one client (clientOf) may have.
	maxOfClient = (maxAtWork + maxQueued) / 4

	// answerTime is how long an answer may take to be written. Where all places are taken, the one that is written
	// longest is cut off after writeGrace.
	answerTime = 10 * time.Second
	writeGrace = time.Second
	retryAfter = time.Second
)

// side is one way to reach a server: the control socket, the socket for readers, the network. Each has bounds of its
// own, so that readers do not keep the owner of the control socket from an answer.
type side struct {
	*answers
	places    chan struct{} // one for each request that is at work or waits
	work      chan struct{} // one for each request at work
	rendering chan struct{} // one answer at a time
	packer    packer
	writing   writers
	clients   clients
}

func newSide(a *answers) *side {
	return &side{answers: a, places: make(chan struct{}, maxAtWork+maxQueued), work: make(chan struct{}, maxAtWork),
		rendering: make(chan struct{}, 1), writing: writers{now: a.now}}
}

// busy is the answer to a request beyond the bounds of a side.
func busy(what string) *Error {
	return &Error{Msg: what, Code: http.StatusServiceUnavailable, retry: retryAfter,
		Advice: "other readers are being served; try again in a second"}
}

// page waits for this request's turn, and returns the answer of the next snapshot. All requests for that answer share
// it. The place at work is free again before the answer is written, so a slow reader takes none. client is whom
// the request is from (clientOf); "" where all requests are of one program.
func (d *side) page(ctx context.Context, client string, v format) (*page, error) {
	leave, err := d.place(client)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	next := d.whole.join() // before the wait: all waiting requests share it
	select {
	case d.work <- struct{}{}:
		defer func() { <-d.work }()
	case <-ctx.Done():
		return nil, d.silent()
	}
	status, err := d.await(ctx, next)
	if err != nil {
		return nil, err
	}
	return d.share(&next.rendered, v, status)
}

// share returns the answer that all requests share. The first one renders it.
func (d *side) share(of *rendered, v format, s report.Status) (*page, error) {
	p, first := of.page(v)
	if first {
		d.render(p, s)
	}
	<-p.done
	return p, p.err
}

// place takes one of the places for requests that are at work or wait.
func (d *side) place(client string) (leave func(), err error) {
	gone, ok := d.clients.enter(client)
	if !ok {
		return nil, busy("too many requests of " + client + " wait for an answer")
	}
	select {
	case d.places <- struct{}{}:
		return func() { <-d.places; gone() }, nil
	default:
		gone()
		return nil, busy("too many requests wait for an answer")
	}
}

// clients counts the requests of each client, so that none of them takes the places of all.
type clients struct {
	mu sync.Mutex
	of map[string]int
}

// enter takes a place of the client's share; ok is false where it has all of them.
func (c *clients) enter(client string) (leave func(), ok bool) {
	if client == "" {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client] >= maxOfClient {
		return nil, false
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[client]++
	return func() { c.leave(client) }, true
}

func (c *clients) leave(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client]--; c.of[client] == 0 {
		delete(c.of, client)
	}
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
