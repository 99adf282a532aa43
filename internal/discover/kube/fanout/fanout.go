// Package fanout asks the agents of many nodes at once.
package fanout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/discover/kube"
	"plimsoll/internal/report"
)

// atOnce is how many agents are asked at a time, and NodeTimeout bounds the wait for each, so that a node that is stuck
// does not keep the others' answers back.
const (
	atOnce      = 16
	NodeTimeout = 15 * time.Second
)

// All asks every pod, and returns one answer for each node, in the order of their names. During an update a node has
// two pods. The standby one has no answer, or that of the agent, whose socket a program in its container reaches too.
func All[T report.Page](ctx context.Context, pods []kube.AgentPod,
	get func(context.Context, kube.AgentPod) ([]byte, error)) []report.Answer[T] {
	return Each[T](ctx, pods, NodeTimeout, get)
}

// Each is All with a bound of the caller's.
func Each[T report.Page](ctx context.Context, pods []kube.AgentPod, patience time.Duration,
	get func(context.Context, kube.AgentPod) ([]byte, error)) []report.Answer[T] {
	answers := make([]report.Answer[T], len(pods))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, pod := range pods {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			answers[i] = answerOf[T](ctx, pod, patience, get)
		})
	}
	all.Wait()
	slices.SortStableFunc(answers, func(a, b report.Answer[T]) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), silence(a)-silence(b), strings.Compare(a.Pod, b.Pod))
	})
	return slices.CompactFunc(answers, func(a, b report.Answer[T]) bool {
		return a.Node == b.Node
	})
}

// silence sorts the nodes that answer first.
func silence[T report.Page](a report.Answer[T]) int {
	if a.Answer == nil {
		return 1
	}
	return 0
}

func answerOf[T report.Page](ctx context.Context, pod kube.AgentPod, patience time.Duration,
	get func(context.Context, kube.AgentPod) ([]byte, error)) report.Answer[T] {
	a := report.Answer[T]{Node: pod.Node, Pod: pod.Name}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	data, err := get(ctx, pod)
	var answer T
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errors.New("no answer in time")
	case err == nil:
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Answer = &answer
	return a
}
