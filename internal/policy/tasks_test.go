package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func TestSlicesOfLevels(t *testing.T) {
	levels := Levels(forest(map[string]strategy.CPUQOS{"/kubepods/burstable/pod1/c": online(), "/kubepods/besteffort/pod2/c": offline(),
		"/lab/web": online(), "/lab/other": {}}))
	can := Machine{Idle: true, Slice: true, LeastWeight: 2}
	for _, c := range []struct {
		mechanism strategy.Mechanism
		slice     time.Duration
		machine   Machine
		want      map[string]string
	}{
		{strategy.MechanismSlice, 0, can, map[string]string{"/kubepods/burstable slice": "100µs", "/lab/web slice": "100µs"}},
		{strategy.MechanismSlice, 3 * time.Millisecond, can, map[string]string{"/kubepods/burstable slice": "3ms", "/lab/web slice": "3ms"}},
		{strategy.MechanismWeight, 3 * time.Millisecond, can, map[string]string{"/kubepods/besteffort weight": "2",
			"/kubepods/burstable slice": "3ms", "/lab/web slice": "3ms"}},
		{strategy.MechanismWeight, 3 * time.Millisecond, Machine{LeastWeight: 2}, map[string]string{"/kubepods/besteffort weight": "2"}},
		{strategy.MechanismSchedExt, 3 * time.Millisecond, can, map[string]string{"/kubepods/besteffort weight": "2", "/kubepods/besteffort/pod2 idle": "1"}},
		{strategy.MechanismNone, 3 * time.Millisecond, can, map[string]string{}},
	} {
		if diff := cmp.Diff(c.want, settingsOf(Settings(c.mechanism, c.slice, levels, c.machine))); diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", c.mechanism, c.slice, diff)
		}
	}
}

// TestCoreScheduling: offline tasks have the one cookie, stand back as without it, and never beside Group Identity.
func TestCoreScheduling(t *testing.T) {
	levels := Levels(forest(map[string]strategy.CPUQOS{"/lab/web": online(), "/lab/batch": offline(), "/kubepods/besteffort/pod2/c": offline()}))
	m := Machine{Idle: true, CoreSched: true, Cookie: "4711", LeastWeight: 2}
	want := map[string]string{"/lab/batch idle": "1", "/lab/batch cookie": "4711", "/kubepods/besteffort weight": "2",
		"/kubepods/besteffort cookie": "4711", "/kubepods/besteffort/pod2 idle": "1"}
	if diff := cmp.Diff(want, settingsOf(Settings(strategy.MechanismCoreSched, 0, levels, m))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m.Identity = true
	if got, why := Choose(strategy.MechanismCoreSched, m); got != strategy.MechanismGroupIdentity {
		t.Errorf("beside Group Identity: %s (%s)", got, why)
	}
}

// TestSettleTasks: tasks that come and go are no quarrel: as soon as one is found that is left to be set, it is; and what
// is no longer wanted is taken back also where some tasks have lost it.
func TestSettleTasks(t *testing.T) {
	c, now := NewColocation(), time.Unix(1, 0)
	s := Setting{ID: workload.ID{Path: "/web", Inode: 7}, Knob: plan.Slice, Value: "3ms"}
	plan := func(have plan.Value, wanted ...Setting) []plan.Change {
		t.Helper()
		now = now.Add(time.Second)
		changes, notes := c.Plan(now, wanted, map[Key]plan.Value{s.Key(): have})
		if len(notes) > 0 {
			t.Errorf("said: %+v", notes)
		}
		var results []plan.Result
		for _, ch := range changes {
			results = append(results, plan.Result{Change: ch, Outcome: plan.Applied, InForce: ch.To})
		}
		c.Learn(now, results)
		return changes
	}
	for range 3 {
		if got := plan("0s", s); len(got) != 1 || got[0].To != "3ms" {
			t.Fatalf("tasks are left: %+v", got)
		}
		if got := plan("3ms", s); len(got) != 0 {
			t.Fatalf("none is left: %+v", got)
		}
	}
	if in := InForce(c.Standings(), nil); len(in) != 0 {
		t.Errorf("a slice keeps nobody behind: %v", in)
	}
	if got := plan("0s"); len(got) != 1 || got[0].To != "0s" || !got[0].Restore {
		t.Errorf("no longer wanted: %+v", got)
	}
}
