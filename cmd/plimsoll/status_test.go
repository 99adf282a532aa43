package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/discover/kube"
	"plimsoll/internal/report"
)

// TestStatusWaitsForNoFile: without an agent it reads files, of which one may let itself be waited for.
func TestStatusWaitsForNoFile(t *testing.T) {
	g := &globals{cgroupRoot: t.TempDir(), stateDir: t.TempDir()}
	journal := filepath.Join(g.stateDir, "journal")
	if err := unix.Mkfifo(journal, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := g.status(ctx)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "in time") {
			t.Errorf("%v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for the file")
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
