package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"plimsoll/internal/report"
)

// snapshots are the agent's answers. All requests that arrive before a snapshot begins share it. So no request waits
// for more than two snapshots, however many there are: the kubelet would restart an agent whose probes time out. A hung
// agent costs one goroutine.
type snapshots struct {
	take func() report.Status

	mu     sync.Mutex
	taking bool
	next   *snapshot // nil: no request waits for a snapshot that has not begun
}

type snapshot struct {
	taken  chan struct{}
	status report.Status // valid once taken is closed; read-only

	mu    sync.Mutex
	pages map[pageKey]*page
}

// pageKey names an answer that is made of a snapshot.
type pageKey struct {
	side *side
	view string
}

// page returns the one answer of its kind. first says that the caller has to render it.
func (s *snapshot) page(d *side, v view) (p *page, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pageKey{d, v.name}
	if s.pages == nil {
		s.pages = map[pageKey]*page{}
	}
	if p = s.pages[key]; p == nil {
		p, first = newPage(v), true
		s.pages[key] = p
	}
	return p, first
}

// join is the next one to begin.
func (s *snapshots) join() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &snapshot{taken: make(chan struct{})}
	}
	if !s.taking {
		s.taking = true
		go s.takeAll()
	}
	return s.next
}

// takeAll goes on for as long as somebody waits.
func (s *snapshots) takeAll() {
	for next := s.begin(); next != nil; next = s.begin() {
		next.status = s.take()
		close(next.taken)
	}
}

func (s *snapshots) begin() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.next
	s.next, s.taking = nil, next != nil
	return next
}

// ask waits for a snapshot that begins after the request.
func (s *Server) ask(ctx context.Context) (report.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.await(ctx, s.snapshots.join())
}

func (s *Server) await(ctx context.Context, next *snapshot) (report.Status, error) {
	select {
	case <-next.taken:
		return next.status, nil
	case <-ctx.Done():
		return report.Status{}, s.silent()
	}
}

func (s *Server) silent() *Error {
	return &Error{Msg: fmt.Sprintf("the agent gave no answer within %s", s.patience), Code: http.StatusServiceUnavailable,
		Advice: "its loop hangs; see the agent's log, and restart the agent if that lasts"}
}
