package main

import (
	"strings"
	"testing"
)

// TestRatioFlags: each flag that takes a part or a multiple is read by capacity.ParseRatio.
func TestRatioFlags(t *testing.T) {
	for _, args := range []string{"simulate exp --cgroups 2 --burst 200 --utilization 70%",
		"simulate exp --cgroups 2 --burst 1 --utilization 70",
		"simulate exp --cgroups 2 --sweep burst=0..200:50 --utilization 0.7",
		"simulate pareto --cgroups 2 --burst 1 --utilization 0.7 --truncate 300",
		"advise web.npy --target 99.9", "advise web.npy --throttled 11", "advise web.npy --kernel-burst 100"} {
		if _, stderr, err := (testNode{}).run(strings.Fields(args)...); err == nil || exitCode(err) != exitMisused ||
			!strings.Contains(stderr, "if you mean percent") {
			t.Errorf("%s: %v, %q", args, err, stderr)
		}
	}
}
