package main

import (
	"context"
	"strings"
	"testing"

	"plimsoll/internal/report"
)

// TestStatusWaitsForNoFile: without an agent status reads files, and one of them may block.
func TestStatusWaitsForNoFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan struct{})
	defer close(end)
	_, err := inTime(ctx, func() (report.Status, error) {
		cancel()
		<-end
		return report.Status{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v", err)
	}
}
