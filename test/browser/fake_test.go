//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/page"
	"plimsoll/internal/web"
)

// fake speaks what plimsoll serve speaks, about a node that does not exist: a thousand containers, hostile names,
// figures that are not measured, a server that hangs. TestRealAgent has the real one.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	node    *node
	every   time.Duration
	silent  bool // connections stay open, and nothing is sent
	lost    bool // the agent is
	recent  bool // a recording
	full    bool // of other pages
	readers int
	opened  int
	end     chan struct{}
	ended   chan struct{} // closed and made anew: the streams that are open end
}

func newFake(t *testing.T, n *node) *fake {
	t.Helper()
	f := &fake{node: n, every: time.Second, end: make(chan struct{}), ended: make(chan struct{})}
	f.Server = httptest.NewServer(f.handler())
	t.Cleanup(func() {
		close(f.end)
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fake) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page.Files()))
	mux.HandleFunc("GET /api/v1/view", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(f.node.view(time.Now()))
	})
	mux.HandleFunc("GET /api/v1/live", f.live)
	mux.HandleFunc("GET /api/v1/snapshot", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="plimsoll-snapshot.json.gz"`)
		_, _ = io.WriteString(w, "a file")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", web.PagePolicy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// set changes what the fake does.
func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// streams are how many are open, and how many have been.
func (f *fake) streams() (open, all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readers, f.opened
}

func (f *fake) live(w http.ResponseWriter, r *http.Request) {
	var ended chan struct{}
	var full bool
	f.set(func(f *fake) { f.readers++; f.opened++; ended, full = f.ended, f.full })
	defer f.set(func(f *fake) { f.readers-- })
	if full {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error": "too many pages are open", "hint": "try again"}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	id := r.URL.Query().Get("container")
	f.first(w, id)
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		if out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-f.end:
			return
		case <-ended:
			return
		case <-tick.C:
			f.next(w, id)
		}
	}
}

func (f *fake) first(w io.Writer, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent {
		return
	}
	now := time.Now()
	v := f.node.view(now)
	if f.recent {
		v.Recorded = &now
	}
	send(w, "view", v)
	if id != "" {
		send(w, "detail", f.node.detail(id, now))
	}
}

func (f *fake) next(w io.Writer, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.silent || f.recent:
		_, _ = io.WriteString(w, ": alive\n\n")
		return
	case f.lost:
		send(w, "agent",
			map[string]any{"ok": false, "why": "dial unix /run/plimsoll/read.sock: connect: connection refused"})
		return
	}
	send(w, "agent", map[string]any{"ok": true})
	now := time.Now()
	v := f.node.view(now)
	send(w, "change", map[string]any{"now": v.Now, "window_ns": v.Window, "sentence": v.Sentence, "mark": v.Mark,
		"rows": v.Rows, "gone": f.node.gone, "problems": v.Problems, "mode": v.Mode, "held_reason": v.HeldReason,
		"colocation": v.Colocation, "reserve": v.Reserve, "waits": v.Waits, "recording": v.Recording})
	if id != "" {
		send(w, "periods", f.node.periods(id, now, time.Second))
	}
}

func send(w io.Writer, event string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
}
