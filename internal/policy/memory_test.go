package policy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestTurnsUseMemoryAgain: a turn leaves little garbage for each group, because the next one uses its memory again.
func TestTurnsUseMemoryAgain(t *testing.T) {
	const pods, containers, turns = 100, 3, 20
	in := Input{Rules: Rules{Burst: true}, Node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 100}}
	half := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 50 * ms}
	for i := range pods {
		of := func(name string) Group {
			g := Group{ID: workload.ID{Path: fmt.Sprintf("/pod%d%s", i, name), Inode: uint64(10*i + len(name))},
				Strategy: strategy.Default(), Ready: true, Limit: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
				Disk: half, Reading: sample.Reading{At: t0, Counters: cpu.Counters{HasUsage: true}}}
			g.Strategy.Policy = strategy.Auto
			return g
		}
		p := Pod{Group: of(""), Ceiling: 8}
		for c := range containers {
			p.Containers = append(p.Containers, of("/"+strings.Repeat("c", c+1)))
		}
		in.Pods = append(in.Pods, p)
	}
	s := NewState(0)
	decide := func(i int) {
		in.Now = t0.Add(time.Duration(i) * 90 * ms)
		if out := s.Decide(in); len(out.Views) != (1+containers)*pods {
			t.Fatalf("%d views of %d groups", len(out.Views), (1+containers)*pods)
		}
	}
	decide(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range turns {
		decide(i + 1)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / (turns * (1 + containers) * pods); each > 150 {
		t.Errorf("a turn allocates %d bytes for each group", each)
	}
}
