package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
)

// Waiting answers in place of an agent that waits for another one's end: it lives, it is ready when wrong has nothing to
// say, and it knows nothing yet. It ends with the context; the address is free then.
func Waiting(ctx context.Context, listen string, wrong func() error) error {
	if listen == "" {
		<-ctx.Done()
		return nil
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	say := func(wrong func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if err := wrong(); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprintln(w, err)
				return
			}
			fmt.Fprintln(w, "ok: stands by for the agent that runs")
		}
	}
	mux.HandleFunc("GET /healthz", say(func() error { return nil }))
	mux.HandleFunc("GET /readyz", say(wrong))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": "this agent stands by for the one that runs on its node"}`, http.StatusServiceUnavailable)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout, MaxHeaderBytes: maxHeader}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
