package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
)

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
