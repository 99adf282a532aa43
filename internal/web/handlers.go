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
	"net/netip"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// reading is what the readers' socket offers: the state of the agent, as data.
func (s *Server) reading() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.readers.check(alive))
	mux.HandleFunc("GET /readyz", s.readers.check(ready))
	mux.HandleFunc("GET /api/v1/status", s.readers.show(statusFormat()))
	mux.HandleFunc("GET /api/v1/follow", s.feed.follow(maxFollowers))
	mux.HandleFunc("/", s.readers.readOnly)
	return mux
}

// control is what the owner of the control socket may do.
func (s *Server) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/status", s.owner.show(statusFormat()))
	mux.HandleFunc("GET /api/v1/report", s.owner.show(reportFormat()))
	mux.HandleFunc("GET /api/v1/follow", s.feed.follow(ownFollowers))
	mux.HandleFunc("GET /api/v1/plan", s.plan(s.owner))
	mux.HandleFunc("POST /api/v1/hold", post(s, s.hold))
	mux.HandleFunc("POST /api/v1/retire", post(s, s.retire))
	mux.HandleFunc("POST /api/v1/resume", post(s, s.resume))
	mux.HandleFunc("POST /api/v1/pause", post(s, s.pause))
	mux.HandleFunc("POST /api/v1/release", post(s, s.release))
	mux.HandleFunc("/", s.owner.notFound)
	return mux
}

// readOnly answers requests for which there is no handler, where nobody controls the agent.
func (d *side) readOnly(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		d.notFound(w, r)
		return
	}
	w.Header().Set("Allow", "GET, HEAD")
	d.fail(w, &Error{Msg: r.Method + " is not allowed here", Code: http.StatusMethodNotAllowed,
		Advice: "control goes through " + ControlSocket + " in the state directory, or the plimsoll command"})
}

func (d *side) notFound(w http.ResponseWriter, r *http.Request) {
	d.fail(w, &Error{Msg: "nothing is at " + r.Method + " " + r.URL.Path, Code: http.StatusNotFound,
		Advice: "/ lists what there is"})
}

// show answers with something made of a snapshot.
func (d *side) show(v format) http.HandlerFunc {
	return d.with(func(r *http.Request) (*page, error) { return d.page(r.Context(), clientOf(r), v) })
}

// with answers with the page that make returns. By then make has left its place, so a slow reader takes none.
func (d *side) with(make func(*http.Request) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := make(r)
		if err != nil {
			d.fail(w, err)
			return
		}
		d.send(w, r, p)
	}
}

// clientOf is whose share a request takes: an address of IPv4, or a network of IPv6. It is "" for this machine's own
// addresses, which all of its programs have.
func clientOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || from.Addr().Unmap().IsLoopback() {
		return ""
	}
	if address := from.Addr().Unmap(); address.Is4() {
		return address.String()
	}
	return networkOf(from.Addr()).String()
}

// post decodes a request, does it, and answers with its result or error.
func post[Q any](s *Server, do func(context.Context, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&q); err != nil && !errors.Is(err, io.EOF) { // no body: no arguments
			s.owner.fail(w, &Error{Msg: "request: " + err.Error(), Code: http.StatusBadRequest,
				Advice: "send one JSON object; docs/REFERENCE.md names the fields"})
			return
		}
		result, err := do(r.Context(), q)
		if err != nil {
			s.owner.fail(w, err)
			return
		}
		s.owner.answer(w, http.StatusOK, result)
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

func (s *Server) pause(ctx context.Context, q targetRequest) (any, error) {
	t, err := s.target(ctx, q.Container, q.For)
	if err != nil {
		return nil, err
	}
	return t, s.agent.Pause(ctx, t.Cgroup, time.Duration(q.For))
}

func (s *Server) release(ctx context.Context, q targetRequest) (any, error) {
	t, err := s.target(ctx, q.Container, q.For)
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
		return Target{}, &Error{Msg: fmt.Sprintf("a time of %s is negative", time.Duration(d)),
			Code: http.StatusBadRequest}
	}
	st, err := s.owner.ask(ctx, &s.owner.whole)
	if err != nil {
		return Target{}, err
	}
	c, err := report.Find(st.Containers, arg)
	return Target{Cgroup: c.Cgroup, Name: c.Name}, err
}

func (d *side) answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	if err := report.WriteJSON(w, v); err != nil {
		d.log.Debug("answer", "error", err) // the client is gone
	}
}

func (d *side) fail(w http.ResponseWriter, err error) {
	e := &Error{Msg: err.Error(), Code: codeOf(err)}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		e.Advice = hinted.Hint()
	}
	var web *Error
	if errors.As(err, &web) && web.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(web.retry.Seconds()))))
	}
	d.answer(w, e.Code, e)
}

// codeOf is the HTTP status of an error.
func codeOf(err error) int {
	var web *Error
	var ambiguous *report.AmbiguousError
	var unknown *report.UnknownError
	switch {
	case errors.As(err, &web) && web.Code == 0: // the agent cannot be reached
		return http.StatusServiceUnavailable
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
