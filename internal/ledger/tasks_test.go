package ledger

import (
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestTasks: tasks that come and go are no quarrel: as soon as one is found that is left to be set, it is; and what is
// no longer intended is taken back also where some tasks have lost it.
func TestTasks(t *testing.T) {
	l, now := New(), time.Unix(1, 0)
	s := plan.Intent{Key: plan.Key{ID: workload.ID{Path: "/web", Inode: 7}, Knob: plan.Slice}, Value: "3ms"}
	turn := func(outcome plan.Outcome, tasks map[plan.Value]int, wanted ...plan.Intent) []plan.Change {
		t.Helper()
		now = now.Add(time.Minute)
		if event := l.See(now, s.Key, Sight{Tasks: tasks}); event != None {
			t.Errorf("said: %s", event)
		}
		changes := append(l.Restores(now, wanted, func(plan.Key) bool { return true }), l.Plan(now, wanted)...)
		var results []plan.Result
		for _, c := range changes {
			results = append(results, plan.Result{Change: c, Outcome: outcome, InForce: c.To, Err: "EPERM"})
		}
		l.Learn(now, results)
		return changes
	}
	for range 3 {
		if got := turn(plan.Applied, map[plan.Value]int{"0s": 1, "3ms": 4, "20ms": 1}, s); len(got) != 1 ||
			got[0].To != "3ms" || got[0].Restore {
			t.Fatalf("tasks are left: %+v", got)
		}
		if got := l.Plan(now, []plan.Intent{s}); len(got) != 0 {
			t.Fatalf("they have just been set: %+v", got)
		}
		if got := turn(plan.Applied, map[plan.Value]int{"3ms": 5, "20ms": 1}, s); len(got) != 0 {
			t.Fatalf("none is left, one has a slice of its own: %+v", got)
		}
	}
	other := s
	other.Value = "5ms"
	if got := turn(plan.Refused, map[plan.Value]int{"3ms": 5}, other); len(got) != 1 || got[0].From != "3ms" ||
		got[0].To != "5ms" {
		t.Errorf("another value: %+v", got)
	}
	if got := turn(plan.Refused, map[plan.Value]int{"3ms": 1, "5ms": 4}, other); len(got) != 1 ||
		got[0].From != "3ms" || got[0].To != "5ms" {
		t.Errorf("partly refused: %+v", got)
	}
	if got := turn(plan.Applied, map[plan.Value]int{"0s": 1, "5ms": 4}); len(got) != 1 || got[0].To != "0s" ||
		!got[0].Restore {
		t.Errorf("no longer intended: %+v", got)
	}
	if got := turn(plan.Applied, map[plan.Value]int{"0s": 5}); len(got) != 0 {
		t.Errorf("taken back: %+v", got)
	}
}

// TestTasksPartlyRefused: where some tasks may have taken what the kernel refused for others, it is ours,
// and taken back.
func TestTasksPartlyRefused(t *testing.T) {
	l, now := New(), time.Unix(1, 0)
	s := plan.Intent{Key: plan.Key{ID: workload.ID{Path: "/web", Inode: 7}, Knob: plan.Cookie}, Value: "7"}
	l.See(now, s.Key, Sight{Tasks: map[plan.Value]int{"0": 2}})
	changes := l.Plan(now, []plan.Intent{s})
	if len(changes) != 1 {
		t.Fatalf("%+v", changes)
	}
	l.Learn(now,
		[]plan.Result{{Change: changes[0], Outcome: plan.Refused, InForce: "0", Err: "1 tasks set, others not"}})
	if e, _ := l.Entry(s.Key); e.InForce() || e.Problem == "" {
		t.Errorf("%+v", e)
	}
	other := s
	other.Value = "8"
	now = now.Add(time.Minute)
	l.See(now, s.Key, Sight{Tasks: map[plan.Value]int{"7": 1, "99": 1}})
	if got := l.Plan(now, []plan.Intent{other}); len(got) != 1 || got[0].From != "7" {
		t.Errorf("another value: %+v", got)
	}
	if got := l.Restores(now, nil, func(plan.Key) bool { return true }); len(got) != 1 || got[0].To != "0" ||
		!got[0].Restore {
		t.Errorf("no longer intended: %+v", got)
	}
}
