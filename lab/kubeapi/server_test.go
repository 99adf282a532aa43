package kubeapi

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/discover/kube"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// groups are those of pods 1 to 3, with a container each.
type groups struct{}

func (groups) Pods() (list []workload.Pod, err error) {
	for i := 1; i <= 3; i++ {
		path := fmt.Sprintf("/kubepods/burstable/pod%d", i)
		c := workload.Container{ID: workload.ID{Path: path + "/" + fmt.Sprintf("%064x", i), Inode: uint64(10 + i)},
			Runtime: "containerd", Strategy: strategy.Default()}
		list = append(list, workload.Pod{ID: workload.ID{Path: path, Inode: uint64(i)},
			Containers: []workload.Container{c}})
	}
	return list, nil
}
func (groups) Touched() []string             { return nil }
func (groups) Wake() <-chan struct{}         { return nil }
func (groups) Counts() (rescans, lost int64) { return 0, 0 }

// agentOf is the part of an agent that asks the API server.
func agentOf(t *testing.T, a *Server) *kube.Discoverer {
	t.Helper()
	file, err := a.Kubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.Connect(file, "soak/test")
	if err != nil {
		t.Fatal(err)
	}
	d := kube.New(kube.Options{API: client, Node: node, Names: kube.DefaultNames(""), Groups: groups{},
		Own: strategy.DefaultNode(),
		Bandwidth: func(string) (cpu.Bandwidth, error) {
			return cpu.Bandwidth{Quota: time.Millisecond, Period: cpu.DefaultPeriod}, nil
		},
		Changed: func(strategy.Node) {}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

const node = "n"

// podOf has one container of this limit; the status has another one during a resize.
func podOf(i, spec, confirmed int) Pod {
	return Pod{Namespace: "soak", Name: fmt.Sprintf("p%d", i), UID: fmt.Sprint(i),
		Annotations: map[string]string{"koordinator.sh/cpuBurst": `{"policy": "auto"}`},
		Containers:  []Container{{Name: "c0", ID: fmt.Sprintf("%064x", i), Limit: spec, Confirmed: confirmed}}}
}

// TestAPIServer: the agent's own client takes this server for an API server, through changes and failures of each
// kind.
func TestAPIServer(t *testing.T) {
	a, err := Open(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	a.Put(podOf(1, 20, 20))
	d := agentOf(t, a)
	first := func() workload.Container {
		list, err := d.Pods()
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Containers[0]
	}
	matched := func(n int) func() bool {
		return func() bool { _ = first(); s := d.Status(); return s.Ready && s.Reachable && s.Matched == n }
	}
	declares := func(is, next time.Duration) func() bool {
		return func() bool {
			c := first().Declared
			return c != nil && c.Bandwidth.Quota == is && c.Next.Quota == next
		}
	}
	become := func(m Mood) {
		if err := a.Become(m); err != nil {
			t.Fatal(err)
		}
	}
	const ms = time.Millisecond
	soon(t, "the first pod", matched(1))
	if c := first(); c.Strategy.Policy != strategy.Auto || c.Name != "soak/p1/c0" {
		t.Errorf("%+v", c)
	}
	soon(t, "its limit", declares(2*ms, 0))
	a.Put(podOf(1, 50, 20))
	soon(t, "a resize", declares(2*ms, 5*ms))
	a.Put(podOf(1, 50, 50))
	soon(t, "the end of the resize", declares(5*ms, 0))

	last := 5 * ms
	for i, m := range []Mood{Away, Refuses, Hangs} {
		become(m)
		if m != Hangs { // a watch that says nothing is no failure
			soon(t, string(m)+": it is noticed", func() bool { return !d.Status().Reachable })
		}
		limit := 60 + i
		a.Put(podOf(1, limit, limit))
		a.Put(podOf(2, 20, 20))
		if !declares(last, 0)() {
			t.Errorf("%s: a change got through", m)
		}
		become(Answers)
		last = time.Duration(limit) * cpu.DefaultPeriod / 1000
		soon(t, string(m)+": the changes come later", func() bool { return matched(2)() && declares(last, 0)() })
		a.Drop("2")
		soon(t, string(m)+": a pod is gone", matched(1))
	}

	become(Away)
	soon(t, "away again", func() bool { return !d.Status().Reachable })
	for range maxLog + 1 { // more than a watch can begin behind
		a.Put(podOf(1, 20, 20))
	}
	a.Put(podOf(3, 20, 20))
	become(Answers)
	soon(t, "a new list", func() bool { return matched(2)() && declares(2*ms, 0)() })
}
