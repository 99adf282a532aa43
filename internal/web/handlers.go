package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// public serves what anyone who reaches the TCP address may see.
func (s *Server) public() http.Handler {
	mux := s.readOnly(s.overTCP)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			s.fail(w, &Error{Msg: r.Method + " is not allowed here", Code: http.StatusMethodNotAllowed,
				Advice: "control goes through " + SocketName + " in the state directory, or the plimsoll command"})
			return
		}
		s.notFound(w, r)
	})
	return mux
}

// control is what the owner of the socket may do.
func (s *Server) control() http.Handler {
	mux := s.readOnly(s.overUnix)
	mux.HandleFunc("POST /api/v1/hold", post(s, s.hold))
	mux.HandleFunc("POST /api/v1/retire", post(s, s.retire))
	mux.HandleFunc("POST /api/v1/resume", post(s, s.resume))
	mux.HandleFunc("POST /api/v1/pause", post(s, s.pause))
	mux.HandleFunc("POST /api/v1/release", post(s, s.release))
	mux.HandleFunc("/", s.notFound)
	return mux
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.fail(w, &Error{Msg: "nothing is at " + r.Method + " " + r.URL.Path, Code: http.StatusNotFound, Advice: "/ lists what there is"})
}

func (s *Server) readOnly(d *side) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.show(d, metricsView()))
	mux.HandleFunc("GET /healthz", s.check(alive))
	mux.HandleFunc("GET /readyz", s.check(ready))
	mux.HandleFunc("GET /api/v1/status", s.show(d, statusView()))
	mux.HandleFunc("GET /api/v1/report", s.show(d, reportView()))
	mux.HandleFunc("GET /api/v1/plan", s.plan(d))
	mux.HandleFunc("GET /{$}", index)
	return mux
}

// show answers with something made of a snapshot.
func (s *Server) show(d *side, v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.page(r.Context(), d, v)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.send(d, w, r, p)
	}
}

// post decodes a request, does it, and answers with its result or error.
func post[Q any](s *Server, do func(context.Context, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&q); err != nil && !errors.Is(err, io.EOF) { // no body: no arguments
			s.fail(w, &Error{Msg: "request: " + err.Error(), Code: http.StatusBadRequest, Advice: "send one JSON object; docs/OPERATIONS.md names the fields"})
			return
		}
		result, err := do(r.Context(), q)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.answer(w, http.StatusOK, result)
	}
}

func (s *Server) hold(ctx context.Context, q holdRequest) (any, error) {
	results, err := s.agent.Hold(ctx, q.Restore, q.Reason)
	if err != nil {
		return nil, err
	}
	return report.NewResults(results), nil
}

func (s *Server) retire(ctx context.Context, _ struct{}) (any, error) {
	results, err := s.agent.Retire(ctx)
	if err != nil {
		return nil, err
	}
	return report.NewResults(results), nil
}

func (s *Server) resume(ctx context.Context, _ struct{}) (any, error) {
	return struct{}{}, s.agent.Resume(ctx)
}

func (s *Server) pause(ctx context.Context, q pauseRequest) (any, error) {
	t, err := s.target(ctx, q.Container, q.For)
	if err != nil {
		return nil, err
	}
	return t, s.agent.Pause(ctx, t.Cgroup, time.Duration(q.For))
}

func (s *Server) release(ctx context.Context, q releaseRequest) (any, error) {
	t, err := s.target(ctx, q.Cgroup, q.For)
	if err != nil {
		return nil, err
	}
	results, err := s.agent.Release(ctx, t.Cgroup, time.Duration(q.For))
	return Released{Target: t, Results: ofFamily(results, t.Cgroup)}, err
}

// ofFamily keeps what was done to a group, its ancestors and its descendants: the turn that releases it may also do
// what was due elsewhere.
func ofFamily(results []plan.Result, cgroup string) []plan.Result {
	under := func(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
	kept := []plan.Result{}
	for _, r := range results {
		if path := r.Change.Cgroup.Path; under(path, cgroup) || under(cgroup, path) {
			kept = append(kept, r)
		}
	}
	return kept
}

// target finds the unit that an argument means.
func (s *Server) target(ctx context.Context, arg string, d duration) (Target, error) {
	if d < 0 {
		return Target{}, &Error{Msg: fmt.Sprintf("a time of %s is negative", time.Duration(d)), Code: http.StatusBadRequest}
	}
	st, err := s.ask(ctx)
	if err != nil {
		return Target{}, err
	}
	c, err := report.Find(st.Containers, arg)
	return Target{Cgroup: c.Cgroup, Name: c.Name}, err
}

func (s *Server) answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	if err := report.WriteJSON(w, v); err != nil {
		s.log.Debug("answer", "error", err) // the client is gone
	}
}

func (s *Server) fail(w http.ResponseWriter, err error) {
	e := &Error{Msg: err.Error(), Code: codeOf(err)}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		e.Advice = hinted.Hint()
	}
	var web *Error
	if errors.As(err, &web) && web.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(web.retry.Seconds()))))
	}
	s.answer(w, e.Code, e)
}

// codeOf is the HTTP status of an error.
func codeOf(err error) int {
	var web *Error
	var ambiguous *report.AmbiguousError
	var unknown *report.UnknownError
	switch {
	case errors.As(err, &web):
		return web.Code
	case errors.As(err, &ambiguous):
		return http.StatusConflict
	case errors.As(err, &unknown), errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
