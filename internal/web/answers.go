package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"plimsoll/internal/report"
)

// answers are made of snapshots of the agent: by the agent's own server, and by the process that serves the network.
type answers struct {
	whole, health snapshots
	now           func() time.Time
	log           *slog.Logger
	// patience is how long a snapshot may take. One that takes longer means that the agent's loop hangs.
	patience time.Duration
}

// source is where snapshots are from.
type source interface {
	// Status is the whole state.
	Status(context.Context) (report.Status, error)
	// Health is the part of it that says whether the agent lives and is ready: it costs the same with any number of
	// containers.
	Health(context.Context) (report.Status, error)
}

func newAnswers(from source, now func() time.Time, log *slog.Logger) *answers {
	return &answers{whole: snapshots{take: from.Status}, health: snapshots{take: from.Health}, now: now, log: log,
		patience: 2 * time.Second}
}

// snapshots are the agent's answers. All requests that arrive before a snapshot begins share it. So no request waits
// for more than two snapshots and the pause between them, however many requests there are: the kubelet would restart an
// agent whose probes time out. A hung agent costs one goroutine.
type snapshots struct {
	take func(context.Context) (report.Status, error)
	// pause is the time between two snapshots, in units of how long the first one took, and at most pauseMost: what
	// readers can cost the agent is a fixed part of its time.
	pause int

	mu     sync.Mutex
	taking bool
	next   *snapshot // nil: no request waits for a snapshot that has not begun
	free   time.Time // when the next one may begin
}

// pauseMost bounds the pause between two snapshots: it is a part of patience.
const pauseMost = time.Second

type snapshot struct {
	taken  chan struct{}
	status report.Status // valid once taken is closed; read-only, as err
	err    error
	rendered
}

// rendered are the answers that are made of one state.
type rendered struct {
	mu    sync.Mutex
	pages map[string]*page // by the format's name
}

// page returns the one answer of its kind. first says that the caller has to render it.
func (s *rendered) page(v format) (p *page, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil {
		s.pages = map[string]*page{}
	}
	if p = s.pages[v.name]; p == nil {
		p, first = newPage(v), true
		s.pages[v.name] = p
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
		begin := time.Now()
		next.status, next.err = s.take(context.Background())
		end := time.Now()
		s.free = end.Add(min(pauseMost, time.Duration(s.pause)*end.Sub(begin)))
		close(next.taken)
	}
}

func (s *snapshots) begin() *snapshot {
	time.Sleep(time.Until(s.free))
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.next
	s.next, s.taking = nil, next != nil
	return next
}

// ask waits for a snapshot that begins after the request.
func (a *answers) ask(ctx context.Context, s *snapshots) (report.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	return a.await(ctx, s.join())
}

func (a *answers) await(ctx context.Context, next *snapshot) (report.Status, error) {
	select {
	case <-next.taken:
		return next.status, next.err
	case <-ctx.Done():
		return report.Status{}, a.silent()
	}
}

func (a *answers) silent() *Error {
	return &Error{Msg: fmt.Sprintf("the agent gave no answer within %s", a.patience),
		Code:   http.StatusServiceUnavailable,
		Advice: "its loop hangs; see the agent's log, and restart the agent if that lasts"}
}
