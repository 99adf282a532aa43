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

// TestBenchOnRealGroups runs the bench, small and short, and wants to see real readings,
// real throttling, and nothing left behind.
func TestBenchOnRealGroups(t *testing.T) {
	groups, err := experiment.NewGroups(cgrouptest.Root(), "bench")
	if err != nil {
		cgrouptest.Skip(t, "control groups cannot be made here: %v", err)
	}
	if err := groups.Close(); err != nil {
		t.Fatal(err)
	}
	s := settings{size: size{Pods: 5, Containers: 10}, span: time.Second, warmUp: 4 * time.Second, others: 50, cgroupRoot: cgrouptest.Root(),
		plimsoll: binary(t)}
	r, err := measure(t.Context(), s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 0, 1, 1} {
		sc := r.Scenarios[i]
		if sc.Throttled != want || sc.Agent.CPUs <= 0 || sc.RSS < 1<<20 || sc.Turns < 0.5 || sc.Polls && (sc.Looks < 30 || sc.Turns < 5) {
			t.Errorf("%+v, want %d throttled", sc, want)
		}
	}
	if hasBurst := len(r.Refills) > 0; hasBurst && (len(r.Refills) != 2 || r.Refills[0].P50 <= 0 || r.Refills[1].Groups != 15+50) {
		t.Errorf("refills %+v", r.Refills)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, s, t.Logf); err == nil {
		t.Error("an interrupted bench gave a result")
	}
	tree, err := cgroup.Detect(cgroup.NewDir(s.cgroupRoot))
	if err != nil {
		t.Fatal(err)
	}
	left, err := tree.Children("/")
	if err != nil || strings.Contains(strings.Join(left, " "), "plimsoll-bench-") {
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

// TestMain is the bare loop where the bench starts this program as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-bare") {
		main()
	}
	os.Exit(m.Run())
}
