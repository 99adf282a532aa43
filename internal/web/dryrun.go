package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// DryRun finds out what would be written were the policy this one ("": as configured), and writes nothing.
type DryRun func(ctx context.Context, policy string, watch time.Duration) ([]plan.Change, error)

const (
	// maxWatch bounds how long one dry run may take.
	maxWatch = 10 * time.Second
	// tcpPause is the pause between two dry runs over TCP, in units of how long the first one took: a
	// dry run takes turns of its own, and readers are not to keep a second agent going.
	tcpPause = 4
)

// plan answers with what would be changed.
func (s *Server) plan(d *side) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.dryRun == nil {
			s.notFound(w, r)
			return
		}
		query := r.URL.Query()
		watch := 2 * time.Second
		if text := query.Get("watch"); text != "" {
			var err error
			if watch, err = time.ParseDuration(text); err != nil || watch < 0 || watch > maxWatch {
				s.fail(w, &Error{Code: http.StatusBadRequest,
					Msg: fmt.Sprintf("watch=%.40s is no time from 0s to %s", text, maxWatch)})
				return
			}
		}
		q := question{query.Get("policy"), watch}
		run, err := d.dryRuns.join(q, func(ctx context.Context) (*page, error) { return s.renderDryRun(ctx, d, q) })
		if err != nil {
			s.fail(w, err)
			return
		}
		defer d.dryRuns.leave(run)
		select {
		case <-r.Context().Done():
		case <-run.done:
			if run.err != nil {
				s.fail(w, run.err)
				return
			}
			s.send(d, w, r, run.page)
		}
	}
}

// renderDryRun renders what one finds.
func (s *Server) renderDryRun(ctx context.Context, d *side, q question) (*page, error) {
	changes, err := s.dryRun(ctx, q.policy, q.watch)
	if err != nil {
		return nil, &Error{Msg: err.Error(), Code: http.StatusBadRequest}
	}
	v := view{"plan", jsonType, func(w io.Writer, _ report.Status) error {
		return report.WriteJSON(w, report.NewPlan(changes))
	}}
	p := newPage(v)
	d.render(p, report.Status{})
	return p, p.err
}

// question is what a dry run is to find out.
type question struct {
	policy string
	watch  time.Duration
}

// dryRuns are the dry runs of a side: one at a time, with a pause after each. Equal requests during a dry run
// share its answer.
type dryRuns struct {
	now   func() time.Time
	pause int // units of the last one's duration

	mu   sync.Mutex
	run  *dryRun
	free time.Time // when the next one may begin
}

type dryRun struct {
	question
	cancel  context.CancelFunc
	waiting int
	done    chan struct{}
	page    *page
	err     error
}

// join takes part in the dry run under way, or begins one.
func (l *dryRuns) join(q question, do func(context.Context) (*page, error)) (*dryRun, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	switch run := l.run; {
	case run != nil && (run.question != q || run.waiting == 0):
		return nil, &Error{Msg: "another plan is being made", Code: http.StatusTooManyRequests,
			retry: run.watch + retryAfter, Advice: "try again in some seconds"}
	case run != nil && run.waiting == maxQueued:
		return nil, busy("too many requests wait for this plan")
	case run != nil:
		run.waiting++
		return run, nil
	case now.Before(l.free):
		return nil, &Error{Msg: "plans are made too often", Code: http.StatusTooManyRequests, retry: l.free.Sub(now),
			Advice: "each costs the agent; plimsoll plan on the node has no such limit"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &dryRun{question: q, cancel: cancel, waiting: 1, done: make(chan struct{})}
	l.run = run
	go func() {
		defer cancel()
		page, err := do(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		run.page, run.err = page, err
		end := l.now()
		l.run, l.free = nil, end.Add(time.Duration(l.pause)*end.Sub(now))
		close(run.done)
	}()
	return run, nil
}

// leave ends a dry run when the last request for its answer is gone.
func (l *dryRuns) leave(run *dryRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if run.waiting--; run.waiting == 0 {
		run.cancel()
	}
}
