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
	"time"

	"plimsoll/internal/plan"
)

func TestPlanIsMadeOneAtATime(t *testing.T) {
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	s := &Server{log: slog.New(slog.DiscardHandler), rehearsing: make(chan struct{}, 1), rehearse: func(_ context.Context, policy string, watch time.Duration) ([]plan.Change, error) {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-goOn
		if policy == "bad" {
			return nil, errors.New("no such policy")
		}
		return []plan.Change{{Why: policy + " " + watch.String()}}, nil
	}}
	ask := func(query string) (int, string) {
		w := httptest.NewRecorder()
		s.plan(w, httptest.NewRequest(http.MethodGet, "/api/v1/plan"+query, nil))
		return w.Code, w.Body.String()
	}
	first := make(chan string)
	go func() {
		_, body := ask("?policy=auto&watch=3s")
		first <- body
	}()
	<-begun
	if code, body := ask(""); code != http.StatusTooManyRequests {
		t.Errorf("beside another: %d %s", code, body)
	}
	close(goOn)
	if body := <-first; !strings.Contains(body, "auto 3s") {
		t.Error(body)
	}
	for query, want := range map[string]int{"?watch=11s": http.StatusBadRequest, "?watch=-1s": http.StatusBadRequest, "?watch=x": http.StatusBadRequest,
		"?policy=bad": http.StatusBadRequest, "?watch=0s": http.StatusOK} {
		if code, body := ask(query); code != want {
			t.Errorf("%s: %d %s, want %d", query, code, body, want)
		}
	}
	s.rehearse = nil
	if code, _ := ask(""); code != http.StatusNotFound {
		t.Errorf("without a rehearsal: %d", code)
	}
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
