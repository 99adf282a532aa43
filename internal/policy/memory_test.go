package policy

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestTurnsUseMemoryAgain: a turn leaves little garbage for each pod, because the next one uses its memory again.
func TestTurnsUseMemoryAgain(t *testing.T) {
	const pods, turns = 200, 20
	in := Input{Rules: Rules{Burst: true}, Node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 100}}
	half := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 50 * ms}
	for i := range pods {
		of := func(name string) Group {
			g := Group{ID: workload.ID{Path: fmt.Sprintf("/pod%d%s", i, name), Inode: uint64(2*i + len(name) + 1)},
				Strategy: strategy.Default(), Ready: true, Limit: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
				Disk: half, Reading: sample.Reading{At: t0, Counters: cpu.Counters{HasUsage: true}}}
			g.Strategy.Policy = strategy.Auto
			return g
		}
		in.Pods = append(in.Pods, Pod{Group: of(""), Ceiling: 8, Containers: []Group{of("/c")}})
	}
	s := NewState(0)
	decide := func(i int) {
		in.Now = t0.Add(time.Duration(i) * 90 * ms)
		if out := s.Decide(in); len(out.Views) != 2*pods {
			t.Fatalf("%d views of %d groups", len(out.Views), 2*pods)
		}
	}
	decide(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range turns {
		decide(i + 1)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / (turns * pods); each > 300 {
		t.Errorf("a turn allocates %d bytes for each pod", each)
	}
}
