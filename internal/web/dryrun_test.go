package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/plan"
)

// TestPlanIsMadeOneAtATime: equal requests share the answer, and another request is refused meanwhile.
func TestPlanIsMadeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s, err := Listen(&fake{}, Options{Now: time.Now, Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		s.dryRun = func(ctx context.Context, policy string, watch time.Duration) ([]plan.Change, error) {
			runs++
			select {
			case <-time.After(watch):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if policy == "bad" {
				return nil, errors.New("no such policy")
			}
			return []plan.Change{{Why: policy + " " + watch.String()}}, nil
		}
		ask := func(ctx context.Context, query string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.plan(s.owner)(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/plan"+query, nil))
			return w
		}
		check := func(query string, code int, part, retry string) {
			t.Helper()
			w := ask(t.Context(), query)
			if w.Code != code || !strings.Contains(w.Body.String(), part) || w.Header().Get("Retry-After") != retry {
				t.Errorf("%s: %d %v %s, want %d, %q, %q", query, w.Code, w.Header(), w.Body, code, part, retry)
			}
		}
		for range maxQueued {
			go check("?policy=auto&watch=3s", http.StatusOK, "auto 3s", "")
		}
		synctest.Wait()
		check("?policy=auto&watch=3s", http.StatusServiceUnavailable, "too many", "1")
		check("", http.StatusTooManyRequests, "another plan", "4")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if runs != 1 {
			t.Errorf("%d dry runs, want one for all", runs)
		}
		check("?watch=1s", http.StatusOK, " 1s", "")
		for _, query := range []string{"?watch=11s", "?watch=-1s", "?watch=x"} {
			check(query, http.StatusBadRequest, "watch=", "")
		}
		check("?policy=bad&watch=0s", http.StatusBadRequest, "no such policy", "")

		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		begin := time.Now()
		ask(ctx, "?watch=10s")
		synctest.Wait()
		check("?watch=0s", http.StatusOK, "", "")
		if took := time.Since(begin); took != time.Second {
			t.Errorf("a dry run without a request went on: %v", took)
		}
		s.dryRun = nil
		check("", http.StatusNotFound, "nothing", "")
	})
}

// TestClientOfAPlan: the client passes the policy and the time, and gets the changes.
func TestClientOfAPlan(t *testing.T) {
	_, c := open(t, &fake{status: healthy()}, func(s *Server) {
		s.dryRun = func(_ context.Context, policy string, watch time.Duration) ([]plan.Change, error) {
			return []plan.Change{{Why: policy + " " + watch.String()}}, nil
		}
	})
	p, err := c.Plan(t.Context(), "none", time.Second)
	if err != nil || len(p.Changes) != 1 || p.Changes[0].Why != "none 1s" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestWaiting: who waits lives, says whether it is ready, and removes the socket at its end.
func TestWaiting(t *testing.T) {
	socket := filepath.Join(t.TempDir(), ReadSocket)
	ctx, stop := context.WithCancel(t.Context())
	wrong := make(chan error, 2)
	wrong <- errors.New("not in line")
	wrong <- nil
	done := make(chan error, 1)
	go func() { done <- Waiting(ctx, ReadAccess{socket, Nobody}, func() error { return <-wrong }, quiet()) }()
	c := Dial(socket)
	for end := time.Now().Add(5 * time.Second); errors.Is(c.Healthy(ctx, "/healthz"),
		ErrNoAgent); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody answers")
		}
	}
	if err := c.Healthy(ctx, "/healthz"); err != nil {
		t.Errorf("healthz: %v", err)
	}
	if err := c.Healthy(ctx, "/readyz"); err == nil || err.Error() != "not in line" {
		t.Errorf("readyz: %v", err)
	}
	if err := c.Healthy(ctx, "/readyz"); err != nil {
		t.Errorf("readyz: %v", err)
	}
	if _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "stands by") {
		t.Errorf("status: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
