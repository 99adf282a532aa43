package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// Rehearsal finds out what would be written were the policy this one ("": as configured), and writes nothing.
type Rehearsal func(ctx context.Context, policy string, watch time.Duration) ([]plan.Change, error)

// maxWatch bounds how long one rehearsal may take.
const maxWatch = 10 * time.Second

// plan answers with what would be changed. One at a time: each takes turns of its own for as long as it watches.
func (s *Server) plan(w http.ResponseWriter, r *http.Request) {
	if s.rehearse == nil {
		s.notFound(w, r)
		return
	}
	watch := 2 * time.Second
	if text := r.FormValue("watch"); text != "" {
		var err error
		if watch, err = time.ParseDuration(text); err != nil || watch < 0 || watch > maxWatch {
			s.fail(w, &Error{Msg: fmt.Sprintf("watch=%.40s is no time from 0s to %s", text, maxWatch), Code: http.StatusBadRequest})
			return
		}
	}
	select {
	case s.rehearsing <- struct{}{}:
		defer func() { <-s.rehearsing }()
	default:
		s.fail(w, &Error{Msg: "another plan is being made", Code: http.StatusTooManyRequests, Advice: "try again in some seconds"})
		return
	}
	changes, err := s.rehearse(r.Context(), r.FormValue("policy"), watch)
	if err != nil {
		s.fail(w, &Error{Msg: err.Error(), Code: http.StatusBadRequest})
		return
	}
	s.answer(w, http.StatusOK, report.NewPlan(changes))
}
