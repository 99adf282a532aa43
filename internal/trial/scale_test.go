package trial

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestScaledAtEveryRead: whenever the kernel scales a short period, before the n-th reading of a file of the group
// since the agent's first write, the group has the owner's share of a CPU in the end, and no value counts as another
// program's. In every other run the agent dies.
func TestScaledAtEveryRead(t *testing.T) {
	for _, version := range []int{1, 2} {
		for n := range 150 {
			t.Run(fmt.Sprintf("v%d/%d", version, n), func(t *testing.T) { scaledAtRead(t, version, n) })
		}
	}
}

func scaledAtRead(t *testing.T, version, n int) {
	k := mainline(4, uint64(n))
	k.Version = version
	g := Group{Path: "/lab/hog", Quota: 15 * ms, Period: 50 * ms, Strategy: with(strategy.Auto),
		Load: sim.OnOff(3*time.Second, 6*time.Second, 2)}
	w := mustNew(t, Scenario{Kernel: k, Threshold: 100, Groups: []Group{g}})
	reads, wrote := 0, false
	w.Kernel.Fault = func(op, name string, data []byte) error {
		wrote = wrote || op == "write"
		if op == "read" && wrote && (strings.Contains(name, "hog/cpu.max") || strings.Contains(name, "hog/cpu.cfs")) {
			if reads++; reads == n+1 {
				w.Kernel.Scale(g.Path)
			}
		}
		return nil
	}
	w.Run(20*time.Second, nil)
	if n%2 > 0 {
		if err := w.Restart(); err != nil {
			t.Fatal(err)
		}
		w.Run(5*time.Second, nil)
	}
	for _, p := range w.Agent.Status().Problems {
		t.Errorf("problem: %+v", p)
	}
	w.Stop()
	want := cpu.Bandwidth{Quota: 30 * ms, Period: 100 * ms}
	if got := w.Kernel.Bandwidth(g.Path); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
