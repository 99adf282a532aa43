package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll/internal/cpu"
	"plimsoll/internal/hint"
	"plimsoll/internal/workload"
)

// TestNothingWaitsForFiles: while a snapshot waits for the file of a group, the status is there, an Event is queued,
// and more is learned, which is in the next snapshot.
func TestNothingWaitsForFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.groups.set(group("u1", "a"))
		w.given(node(nil), web(""))
		w.pod(0)
		w.pods().put(web(`{"policy": "auto"}`))
		open := make(chan struct{})
		w.d.Bandwidth = func(string) (cpu.Bandwidth, error) {
			<-open
			return cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms}, nil
		}
		second := make(chan workload.Pod)
		go func() { second <- w.pod(0) }()
		synctest.Wait() // it waits for the file
		w.pods().put(web(`{"policy": "none"}`))
		w.d.Foreign("/kubepods/burstable/podu1", "somebody writes")
		if s := w.d.Status(); s.Pods != 1 || s.Matched != 1 || len(w.waiting()) != 1 {
			t.Errorf("%+v, Events %v", s, w.waiting())
		}
		close(open)
		if p := (<-second).Containers[0].Strategy.Policy; p != "auto" {
			t.Errorf("the second snapshot has policy %s", p)
		}
		if p := w.pod(0).Containers[0].Strategy.Policy; p != "none" || w.d.Status().Matched != 1 {
			t.Errorf("the next snapshot has policy %s", p)
		}
	})
}

// TestAwaitedLimitIsNotMissed: a limit that is written while a snapshot is made, after its file was read, makes the
// next snapshot another one.
func TestAwaitedLimitIsNotMissed(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	w.given(node(nil), web(""))
	limit, read, open := cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}, make(chan struct{},
		10), make(chan struct{})
	w.d.Bandwidth = func(string) (cpu.Bandwidth, error) {
		now := limit
		read <- struct{}{}
		<-open
		return now, nil
	}
	first := make(chan workload.Pod)
	go func() { first <- w.pod(0) }()
	<-read // that there is no limit
	limit.Quota = 400 * ms
	w.groups.touched = []string{w.groups.pods[0].Path, w.groups.pods[0].Containers[0].Path}
	touched := make(chan []string)
	go func() { touched <- w.d.Touched() }()
	select {
	case <-touched:
		t.Error("the event was taken before it was known that it is awaited")
	case <-time.After(20 * ms): // it waits for the snapshot
		close(open)
		<-touched
	}
	if p := <-first; p.Declared != nil {
		t.Errorf("declared without a limit: %+v", p.Declared)
	}
	if p := w.pod(0); p.Declared == nil {
		t.Error("the limit that came is not declared")
	}
}

// TestCutsAreBounded: whoever makes pods chooses how many ask for too much, and not how long the status is.
func TestCutsAreBounded(t *testing.T) {
	w := newWorld(t)
	const pods = 300
	var groups []workload.Pod
	objects := []runtime.Object{node(nil)}
	for i := range pods {
		p := web(`{"policy": "auto", "cfsQuotaBurstPercent": 900}`)
		p.Name, p.UID = fmt.Sprintf("web%03d", i), types.UID(fmt.Sprint("u", i))
		p.Status.ContainerStatuses = nil
		objects = append(objects, p)
		groups = append(groups, group(fmt.Sprint("u", i), "a"))
	}
	w.groups.set(groups...)
	w.given(objects...)
	w.pod(0)
	s := w.d.Status()
	if s.CutsNow != pods || len(s.Cuts) != mostListed {
		t.Fatalf("%d of %d", len(s.Cuts), s.CutsNow)
	}
	if s.Cuts[0].Object != "Pod default/web000" {
		t.Errorf("the first is %v", s.Cuts[0])
	}
}

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
	err := AwaitDaemonSet(t.Context(), "ns", "other-restore", ask, time.Millisecond)
	if err != nil || asked != len(answers) {
		t.Errorf("after %d answers: %v", asked, err)
	}
	answers = answers[:3]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = AwaitDaemonSet(ctx, "ns", "other-restore", ask, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 nodes") {
		t.Error(err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for _, command := range []string{
		"kubectl get pods --namespace ns -l app.kubernetes.io/name=other,app.kubernetes.io/component=restore -o wide`",
		"helm uninstall RELEASE --namespace ns --no-hooks`",
		"kubectl delete daemonset,job,serviceaccount,role,rolebinding --namespace ns -l app.kubernetes.io/name=other`",
		"kubectl delete daemonset other-restore --namespace ns`",
		"kubectl rollout restart daemonset/other --namespace ns`"} {
		if !strings.Contains(hint.Line(err), command) {
			t.Errorf("%s, which does not say: %s", hint.Line(err), command)
		}
	}
}
