package fanout

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/discover/kube"
	"plimsoll/internal/report"
)

// TestOneNodeKeepsNoneBack: a node that does not answer is given up, and said, while the others have answered.
func TestOneNodeKeepsNoneBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		answers := All[report.Status](t.Context(), []kube.AgentPod{{Node: "a"}, {Node: "b"}},
			func(ctx context.Context, pod kube.AgentPod) ([]byte, error) {
				if pod.Node == "b" {
					return []byte("{}"), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		if waited := time.Since(begun); waited != NodeTimeout {
			t.Errorf("waited %v, want %v", waited, NodeTimeout)
		}
		if len(answers) != 2 || answers[0].Answer != nil || answers[0].Error != "no answer in time" ||
			answers[1].Answer == nil {
			t.Errorf("%+v", answers)
		}
	})
}

// TestOneAnswerOfANode: also where both pods of a node answer, as by exec during an update.
func TestOneAnswerOfANode(t *testing.T) {
	pods := []kube.AgentPod{{Node: "a", Name: "new"}, {Node: "a", Name: "old"}, {Node: "b", Name: "one"}}
	answers := All[report.Status](t.Context(), pods,
		func(context.Context, kube.AgentPod) ([]byte, error) { return []byte("{}"), nil })
	if len(answers) != 2 || answers[0].Node != "a" || answers[1].Node != "b" {
		t.Errorf("%+v, want one answer of each node", answers)
	}
}
