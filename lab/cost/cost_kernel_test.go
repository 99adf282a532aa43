package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/lab/frame"
)

// TestBenchOnRealGroups runs the bench, small and short, and expects real readings, real throttling, and nothing left
// behind.
func TestBenchOnRealGroups(t *testing.T) {
	cgrouptest.New(t) // groups can be made here
	s := &settings{Settings: frame.Settings{Root: cgrouptest.Root(), Plimsoll: cgrouptest.Binary(t),
		Groups: frame.NoGroups}, idle: []int{3, 6},
		size: size{Pods: 5,
			Containers: 10}, span: time.Second, warmUp: 4 * time.Second, others: 50, polls: true, idleFor: time.Second}
	r, err := frame.Run(t.Context(), "cost", s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 0, 1, 1} {
		sc := r.Scenarios[i]
		if sc.Throttled != want || sc.Agent.CPUs <= 0 || sc.RSS < 1<<20 || sc.Turns < 0.5 || sc.Polls &&
			(sc.Looks < 30 || sc.Turns < 5) {
			t.Errorf("%+v, want %d throttled", sc, want)
		}
	}
	if hasBurst := len(r.Refills) > 0; hasBurst &&
		(len(r.Refills) != 2 || r.Refills[0].P50 <= 0 || r.Refills[1].Groups != 15+50) {
		t.Errorf("refills %+v", r.Refills)
	}
	for i, c := range r.Idle {
		if c.Groups != 6*(i+1) || c.Agent.CPUs <= 0 || c.RSS < 1<<20 || c.Open <= 0 || c.TurnP50 <= 0 ||
			c.TurnP99 < c.TurnP50 || c.Status <= 0 {
			t.Errorf("idle pods: %+v", c)
		}
	}
	if len(r.Idle) != 2 {
		t.Errorf("%d numbers of idle pods were measured", len(r.Idle))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := frame.Run(ctx, "cost", s, t.Logf); err == nil {
		t.Error("an interrupted bench gave a result")
	}
	cgrouptest.NothingLeft(t, "plimsoll-bench-")
}

// TestMain is the bare loop where the bench starts this program as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-bare") {
		main()
	}
	os.Exit(m.Run())
}
