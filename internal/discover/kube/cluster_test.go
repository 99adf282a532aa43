package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestAskEndsInTime: an API server that takes the connection and never answers is not waited for.
func TestAskEndsInTime(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	c, err := reach(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := c.Ask(ctx, AgentPod{Namespace: "default", Name: "agent", Port: 1}, "/")
		answered <- err
	}()
	select {
	case err := <-answered:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("no end")
	}
}
