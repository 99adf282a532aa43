package services

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// TestGroup: services outlive the agent, and the first that fails ends it.
func TestGroup(t *testing.T) {
	agent, end := context.WithCancel(t.Context())
	g := New(agent, slog.New(slog.DiscardHandler))
	defer g.Stop()
	alive := make(chan error, 1)
	g.Start("steady", func(ctx context.Context) error {
		<-g.Agent.Done()
		alive <- ctx.Err()
		<-ctx.Done()
		return nil
	})
	end()
	if err := <-alive; err != nil {
		t.Errorf("a service ended with the agent: %v", err)
	}
	if err := g.End(nil); err != nil {
		t.Error(err)
	}

	g = New(t.Context(), slog.New(slog.DiscardHandler))
	defer g.Stop()
	bad := errors.New("bad")
	g.Start("failing", func(context.Context) error { return bad })
	<-g.Agent.Done()
	if err := g.End(nil); !errors.Is(err, bad) || err.Error() != "failing: bad" {
		t.Errorf("%v, want what failed", err)
	}
}
