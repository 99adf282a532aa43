package policy

import (
	"math"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestUndone: a limit that was declared and is not in force was undone if a refill was made about then.
func TestUndone(t *testing.T) {
	id := workload.ID{Path: "/a", Inode: 7}
	for name, c := range map[string]struct {
		refill   time.Duration // when one is made; 0: none is
		declared time.Duration // when another limit is
		written  time.Duration // when it is written; 0: it is not
		undone   bool          // at 30 s
	}{
		"written and undone":           {10 * time.Second, 11 * time.Second, 0, true},
		"declared before it is undone": {10 * time.Second, 9 * time.Second, 0, true},
		"no refill":                    {0, 11 * time.Second, 0, false},
		"a refill long before":         {2 * time.Second, 11 * time.Second, 0, false},
		"a refill long after":          {20 * time.Second, 11 * time.Second, 0, false},
		"written in time":              {10 * time.Second, 11 * time.Second, 13 * time.Second, false},
		"written late":                 {10 * time.Second, 11 * time.Second, 20 * time.Second, false},
		"nothing is declared":          {10 * time.Second, 0, 0, false},
	} {
		s, b := NewState(), cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
		declared, seen := b, false
		for at := time.Duration(0); at <= 30*time.Second; at += 500 * ms {
			now := t0.Add(at)
			if c.declared != 0 && at == c.declared {
				declared.Quota = 40 * ms
			}
			if c.written != 0 && at == c.written {
				b.Quota = 40 * ms
			}
			if c.refill != 0 && at == c.refill {
				s.Learn(now, []plan.Result{{Change: plan.Change{Cgroup: id, Knob: plan.Burst, Refill: true}, Outcome: plan.Applied, InForce: "0s"}})
			}
			g := Group{ID: id, Disk: b, Ready: true, Declared: &workload.Declared{Bandwidth: declared}}
			out := s.Decide(Input{Now: now, Rules: Rules{Burst: true, Refill: true}, Subscribed: true, Pods: []Pod{{Ceiling: math.Inf(1), Containers: []Group{g}}}})
			v := out.Views[0]
			if waits := c.declared != 0 && at >= c.declared && at < c.declared+staleAfter && b != declared; waits && v.Stable {
				t.Errorf("%s: at %v it may rest", name, at)
			}
			if v.Undone && c.declared+staleAfter > at {
				t.Errorf("%s: told at %v", name, at)
			}
			seen = v.Undone
		}
		if seen != c.undone {
			t.Errorf("%s: undone %v", name, seen)
		}
	}
}
