package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/plan"
)

// TestPlanIsMadeOneAtATime: equal requests share the answer. Another request is refused, and so is
// the next request over TCP during the pause.
func TestPlanIsMadeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := sides(func(ctx context.Context, policy string, watch time.Duration) ([]plan.Change, error) {
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
		})
		ask := func(ctx context.Context, d *side, query string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.plan(d)(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/plan"+query, nil))
			return w
		}
		check := func(d *side, query string, code int, part, retry string) {
			t.Helper()
			w := ask(t.Context(), d, query)
			if w.Code != code || !strings.Contains(w.Body.String(), part) || w.Header().Get("Retry-After") != retry {
				t.Errorf("%s: %d %v %s, want %d, %q, %q", query, w.Code, w.Header(), w.Body, code, part, retry)
			}
		}
		for range maxQueued {
			go check(s.overTCP, "?policy=auto&watch=3s", http.StatusOK, "auto 3s", "")
		}
		synctest.Wait()
		check(s.overTCP, "?policy=auto&watch=3s", http.StatusServiceUnavailable, "too many", "1")
		check(s.overTCP, "", http.StatusTooManyRequests, "another plan", "4")
		check(s.overUnix, "?watch=1s", http.StatusOK, " 1s", "")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if runs != 2 {
			t.Errorf("%d dry runs, want one on each side", runs)
		}
		check(s.overTCP, "?policy=auto&watch=3s", http.StatusTooManyRequests, "too often", "12")
		check(s.overUnix, "?watch=1s", http.StatusOK, " 1s", "")
		for _, query := range []string{"?watch=11s", "?watch=-1s", "?watch=x"} {
			check(s.overTCP, query, http.StatusBadRequest, "watch=", "")
		}
		check(s.overUnix, "?policy=bad&watch=0s", http.StatusBadRequest, "no such policy", "")
		time.Sleep(12 * time.Second)
		check(s.overTCP, "?watch=0s", http.StatusOK, "", "")

		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		begin := time.Now()
		ask(ctx, s.overUnix, "?watch=10s")
		synctest.Wait()
		check(s.overUnix, "?watch=0s", http.StatusOK, "", "")
		if took := time.Since(begin); took != time.Second {
			t.Errorf("a dry run without a request went on: %v", took)
		}
		s.dryRun = nil
		check(s.overTCP, "", http.StatusNotFound, "nothing", "")
	})
}

// sides is a server without listeners.
func sides(r DryRun) *Server {
	return &Server{now: time.Now, log: slog.New(slog.DiscardHandler), patience: time.Second, dryRun: r,
		overTCP: newSide(time.Now, tcpPause), overUnix: newSide(time.Now, 0)}
}

// TestWaiting: who waits lives, says whether it is ready, and gives the address free at its end.
func TestWaiting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, stop := context.WithCancel(t.Context())
	wrong := make(chan error, 2)
	wrong <- errors.New("not in line")
	wrong <- nil
	done := make(chan error, 1)
	go func() { done <- Waiting(ctx, address, func() error { return <-wrong }) }()
	get := func(path string) (int, string) {
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
			res, err := http.Get("http://" + address + path)
			if err != nil && time.Now().Before(end) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return res.StatusCode, string(body)
		}
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d", code)
	}
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "not in line") {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, body := get("/readyz"); code != http.StatusOK {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, body := get("/api/v1/status"); code != http.StatusServiceUnavailable || !strings.Contains(body, `"error"`) {
		t.Errorf("status: %d %s", code, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the address is not free: %v", err)
	}
	again.Close()
}
