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

// TestReactionOnRealGroups runs the lab, small and short, and expects real throttles by both agents, reported and
// counted alike, and nothing left behind.
func TestReactionOnRealGroups(t *testing.T) {
	cgrouptest.New(t) // groups can be made here
	s := &settings{Settings: frame.Settings{Root: cgrouptest.Root(), Plimsoll: cgrouptest.Binary(t)}, groups: 4,
		span: time.Second,
		job: frame.Job{Quota: frame.LeastQuota, Every: time.Second / 5,
			Seed: 1}, warmUp: time.Second / 2, policy: "cfsQuotaBurstOnly"}
	r, err := frame.Run(t.Context(), "reaction", s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Scenarios) != 2 || r.Scenarios[0].Loaded || !r.Scenarios[1].Loaded {
		t.Fatalf("scenarios %+v", r.Scenarios)
	}
	for _, sc := range r.Scenarios {
		for subscribed, o := range map[bool]outcome{true: sc.Events, false: sc.Polled} {
			// a group that flutters is reported as often as its rate allows
			reported := int64(o.Lost.Throttles) + o.Tally.Dropped
			gap := reported - o.Tally.Ends // between two calls a throttle may end
			if o.Subscribed != subscribed || o.Lost.Throttles == 0 || o.Lost.Median <= 0 ||
				// who is raised has few but at the cap
				subscribed && o.Endable.Throttles == 0 || o.Endable.Throttles > o.Lost.Throttles ||
				gap < -4 || gap > 4 ||
				10*o.Tally.Dropped > reported || o.AgentCPU <= 0 || o.GroupsCPU <= 0 {
				t.Errorf("%s: %+v", sc.name(), o)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := frame.Run(ctx, "reaction", s, t.Logf); err == nil {
		t.Error("an interrupted measurement gave a result")
	}
	cgrouptest.NothingLeft(t, "plimsoll-reaction-", "plimsoll-offline-")
}

// TestMain is a worker where the lab starts this program as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
	}
	os.Exit(m.Run())
}
