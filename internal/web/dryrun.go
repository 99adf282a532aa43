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

// MaxWatch bounds how long one dry run may take.
const MaxWatch = 10 * time.Second

// plan answers with what would be changed. Only the control socket has it: a dry run takes turns of its own, and
// readers are not to keep a second agent going.
func (s *Server) plan(d *side) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.dryRun == nil {
			d.notFound(w, r)
			return
		}
		query := r.URL.Query()
		watch := 2 * time.Second
		if text := query.Get("watch"); text != "" {
			var err error
			if watch, err = time.ParseDuration(text); err != nil || watch < 0 || watch > MaxWatch {
				d.fail(w, &Error{Code: http.StatusBadRequest,
					Msg: fmt.Sprintf("watch=%.40s is no time from 0s to %s", text, MaxWatch)})
				return
			}
		}
		q := question{query.Get("policy"), watch}
		run, err := s.dryRuns.join(q, func(ctx context.Context) (*page, error) { return s.renderDryRun(ctx, d, q) })
		if err != nil {
			d.fail(w, err)
			return
		}
		defer s.dryRuns.leave(run)
		select {
		case <-r.Context().Done():
		case <-run.done:
			if run.err != nil {
				d.fail(w, run.err)
				return
			}
			d.send(w, r, run.page)
		}
	}
}

// renderDryRun renders what one finds.
func (s *Server) renderDryRun(ctx context.Context, d *side, q question) (*page, error) {
	changes, err := s.dryRun(ctx, q.policy, q.watch)
	if err != nil {
		return nil, &Error{Msg: err.Error(), Code: http.StatusBadRequest}
	}
	v := format{"plan", jsonType, func(w io.Writer, _ report.Status) error {
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

// dryRuns are the dry runs: one at a time. Equal requests during a dry run share its answer.
type dryRuns struct {
	mu  sync.Mutex
	run *dryRun
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
	switch run := l.run; {
	case run != nil && (run.question != q || run.waiting == 0):
		return nil, &Error{Msg: "another plan is being made", Code: http.StatusTooManyRequests,
			retry: run.watch + retryAfter, Advice: "try again in some seconds"}
	case run != nil && run.waiting == maxQueued:
		return nil, busy("too many requests wait for this plan")
	case run != nil:
		run.waiting++
		return run, nil
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
		l.run = nil
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
