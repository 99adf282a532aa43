package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestAwaitDaemonSet: until all its nodes are ready, through an API server that does not answer at times, and no longer
// than it may.
func TestAwaitDaemonSet(t *testing.T) {
	answers := []struct {
		d   DaemonSet
		err error
	}{{err: errors.New("away")}, {d: DaemonSet{Generation: 1}},
		{d: DaemonSet{Generation: 1, Observed: 1, Desired: 2, Ready: 1}},
		{d: DaemonSet{Generation: 1, Observed: 1, Desired: 2, Ready: 2}}}
	asked := 0
	ask := func(context.Context) (DaemonSet, error) {
		a := answers[min(asked, len(answers)-1)]
		asked++
		return a.d, a.err
	}
	if err := AwaitDaemonSet(t.Context(), ask, time.Millisecond); err != nil || asked != len(answers) {
		t.Errorf("after %d answers: %v", asked, err)
	}
	answers = answers[:3]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := AwaitDaemonSet(ctx, ask, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 nodes") {
		t.Error(err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
