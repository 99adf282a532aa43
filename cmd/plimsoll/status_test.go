package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/discover/kube"
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

// TestOneNodeKeepsNoneBack: a node that does not answer is given up, and said, while the others have answered.
func TestOneNodeKeepsNoneBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		answers := askAll[report.Status](t.Context(), []kube.AgentPod{{Node: "a"}, {Node: "b"}},
			func(ctx context.Context, pod kube.AgentPod) ([]byte, error) {
				if pod.Node == "b" {
					return []byte("{}"), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		if waited := time.Since(begun); waited != nodeTimeout {
			t.Errorf("waited %v, want %v", waited, nodeTimeout)
		}
		if len(answers) != 2 || answers[0].Answer != nil || answers[0].Error != "no answer in time" || answers[1].Answer == nil {
			t.Errorf("%+v", answers)
		}
	})
}
