package web

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"plimsoll/internal/printable"
	"plimsoll/internal/report"
)

// staleTurn is how old the last turn of a live loop may be. The loop turns at least once a second.
const staleTurn = 5 * time.Second

// alive says what is wrong with the loop. A loop that has not turned yet has as long as one that stopped turning.
func alive(s report.Status, now time.Time) error {
	last := s.LastTurn
	if last.IsZero() {
		last = s.Started
	}
	if age := now.Sub(last); age > staleTurn {
		return fmt.Errorf("the last turn of the loop was %s ago, more than %s", age.Round(time.Millisecond), staleTurn)
	}
	return nil
}

// ready says why the agent does not do its work yet. A configuration on disk that has become bad is no reason: the last
// good one is in force, and maxSurge does not count pods that are unready, nor does it wait for their successors.
func ready(s report.Status, now time.Time) error {
	if s.LastTurn.IsZero() {
		return fmt.Errorf("the first scan is not done")
	}
	if k := s.Kubernetes; k != nil && !k.Ready {
		return fmt.Errorf("the API server has not listed everything yet, and no pod is burst until then: %s",
			cmp.Or(k.Fault, "the request is pending"))
	}
	return alive(s, now)
}

// check answers 200 "ok" or 503 with the reason, in plain text.
func (d *side) check(wrong func(report.Status, time.Time) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		st, err := d.ask(r.Context(), &d.health)
		if err == nil {
			err = wrong(st, d.now())
		}
		sayHealth(w, err)
	}
}

func sayHealth(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "%s\n", printable.Lines([]byte(err.Error())))
		return
	}
	fmt.Fprintln(w, "ok")
}

const indexPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>plimsoll</title>
<h1>plimsoll</h1>
<ul>
<li><a href="metrics">metrics</a>
<li><a href="healthz">healthz</a>
<li><a href="readyz">readyz</a>
<li><a href="api/v1/status">status</a>
<li><a href="api/v1/report">report</a>
<li><a href="api/v1/view">view</a>
<li><a href="api/v1/snapshot">snapshot</a>
</ul>
</html>
`

func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, indexPage)
}

// Waiting answers readers in place of an agent that waits for another one's end: it lives, it is ready when wrong has
// nothing to say, and it knows nothing yet. It ends with the context; the socket is free then.
func Waiting(ctx context.Context, at ReadAccess, wrong func() error, log *slog.Logger) error {
	l, err := ListenUnix(at.Socket, at.Group, log)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { sayHealth(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { sayHealth(w, wrong()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": "this agent stands by for the one that runs on its node"}`,
			http.StatusServiceUnavailable)
	})
	return serve(ctx, map[net.Listener]http.Handler{l: mux}, log)
}
