package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"plimsoll/internal/config"
	"plimsoll/internal/logqueue"
)

// TestStandByChecksItsFlagsFirst: an agent whose flags are bad does not wait for the end of the one that runs, to end
// after it.
func TestStandByChecksItsFlagsFirst(t *testing.T) {
	n := newNode(t)
	n.lock(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	queue := logqueue.New()
	defer queue.End()
	f := &runFlags{metrics: "ful", standBy: true}
	err := run(ctx, &globals{Dirs: n.dirs()}, f, &config.File{}, slog.New(slog.DiscardHandler), queue)
	if err == nil || exitCode(err) != exitMisused {
		t.Errorf("%v; want wrong use", err)
	}
}
