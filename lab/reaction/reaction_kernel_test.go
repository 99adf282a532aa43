package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/lab/experiment"
)

// TestReactionOnRealGroups runs the lab, small and short, and wants to see real throttles by both agents, told of and
// counted alike, and nothing left behind.
func TestReactionOnRealGroups(t *testing.T) {
	groups, err := experiment.NewGroups(cgrouptest.Root(), "reaction")
	if err != nil {
		cgrouptest.Skip(t, "control groups cannot be made here: %v", err)
	}
	if err := groups.Close(); err != nil {
		t.Fatal(err)
	}
	s := settings{groups: 4, every: time.Second / 5, span: time.Second, warmUp: time.Second / 2, policy: "cfsQuotaBurstOnly", seed: 1,
		cgroupRoot: cgrouptest.Root(), plimsoll: binary(t)}
	r, err := measure(t.Context(), s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Scenarios) != 2 || r.Scenarios[0].Loaded || !r.Scenarios[1].Loaded {
		t.Fatalf("scenarios %+v", r.Scenarios)
	}
	for _, sc := range r.Scenarios {
		for hears, o := range map[bool]outcome{true: sc.Told, false: sc.Polled} {
			told := int64(o.Lost.Throttles) + o.Tally.Dropped // a group that flutters is told of as often as its rate allows
			apart := told - o.Tally.Ends                      // between two calls a throttle may end
			if o.Heard != hears || o.Lost.Throttles == 0 || o.Lost.Median <= 0 || apart < -4 || apart > 4 ||
				10*o.Tally.Dropped > told || o.AgentCPU <= 0 || o.GroupsCPU <= 0 {
				t.Errorf("%s: %+v", sc.name(), o)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, s, t.Logf); err == nil {
		t.Error("an interrupted measurement gave a result")
	}
	tree, err := cgroup.Detect(cgroup.NewDir(s.cgroupRoot))
	if err != nil {
		t.Fatal(err)
	}
	left, err := tree.Children("/")
	if names := strings.Join(left, " "); err != nil || strings.Contains(names, "plimsoll-reaction-") || strings.Contains(names, "plimsoll-offline-") {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// binary is the program under test: that of PLIMSOLL_BINARY in a VM, where there is no Go, else one that is built here.
func binary(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("PLIMSOLL_BINARY"); given != "" {
		return given
	}
	built := filepath.Join(t.TempDir(), "plimsoll")
	if out, err := exec.Command("go", "build", "-o", built, "plimsoll/cmd/plimsoll").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return built
}

// TestMain is a worker where the lab starts this program as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
	}
	os.Exit(m.Run())
}
