package ledger

import (
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// cpus is a file of CPUs.
var cpus = plan.Key{ID: workload.ID{Path: "/a", Inode: 1}, Knob: plan.CPUs}

// write books a value that the kernel took.
func write(l *Ledger, now time.Time, from, to plan.Value, restore bool) {
	l.Learn(now,
		[]plan.Result{{Change: plan.Change{Cgroup: cpus.ID, Knob: cpus.Knob, From: from, To: to, Restore: restore},
			Outcome: plan.Applied, InForce: to}})
}

func (l *Ledger) want(t *testing.T, name string, state State, baseline plan.Value) {
	t.Helper()
	if e, _ := l.Entry(cpus); e.State != state || e.Baseline != baseline {
		t.Errorf("%s: %s, baseline %q, want %s, %q", name, e.State, e.Baseline, state, baseline)
	}
}

// TestNoCPUs: no CPUs is a value as any other, that of a group that inherits.
func TestNoCPUs(t *testing.T) {
	l := New()
	l.See(t0, cpus, Sight{InFile: ""})
	write(l, t0, "", "2-3", false)
	l.See(t0, cpus, Sight{InFile: "2-3"})
	l.want(t, "written", Ours, "")
	write(l, t0, "2-3", "", true)
	if event := l.See(t0, cpus, Sight{InFile: ""}); event != None {
		t.Errorf("put back: %q", event)
	}
	l.want(t, "put back", Untouched, "")
	for _, other := range []plan.Value{"2", ""} {
		l := New()
		l.See(t0, cpus, Sight{InFile: "0-3"})
		write(l, t0, "0-3", "1", false)
		l.See(t0, cpus, Sight{InFile: other})
		l.want(t, "another's", Foreign, "0-3")
	}
}

// TestShedsOfAnOwner: CPUs that go offline leave a file, and neither ours nor the baseline is another's for it.
func TestShedsOfAnOwner(t *testing.T) {
	for _, sheds := range []bool{true, false} {
		l := New()
		l.See(t0, cpus, Sight{InFile: "0-3"})
		l.See(t0, cpus, Sight{InFile: "0-2", Sheds: sheds})
		if baseline := map[bool]plan.Value{true: "0-3", false: "0-2"}[sheds]; true {
			l.want(t, "before ours", Untouched, baseline)
		}
		write(l, t0, "0-2", "1-2", false)
		l.See(t0, cpus, Sight{InFile: "1", Sheds: sheds})
		if e, _ := l.Entry(cpus); e.Ours() != sheds {
			t.Errorf("sheds %v: %s", sheds, e.State)
		}
	}
}

// TestCopied: a group that was made since the last sight may have copied what stood at that,
// and what was written after it.
func TestCopied(t *testing.T) {
	l := New()
	l.See(t0, cpus, Sight{InFile: "0-3"})
	write(l, t0, "0-3", "2-3", false)
	l.See(t0, cpus, Sight{InFile: "2-3"})
	copied := func(name string, want map[plan.Value]bool) {
		t.Helper()
		for _, value := range []plan.Value{"", "0-3", "2-3", "3"} {
			if baseline, got := l.Copied(cpus, value); got != want[value] || got && baseline != "0-3" {
				t.Errorf("%s: %q is copied: %v, baseline %q", name, value, got, baseline)
			}
		}
	}
	copied("ours", map[plan.Value]bool{"2-3": true})
	write(l, t0, "2-3", "3", false)
	l.See(t0, cpus, Sight{InFile: "0-3"}) // its owner
	copied("put back by its owner", map[plan.Value]bool{"2-3": true, "3": true})
	l.See(t0, cpus, Sight{InFile: "0-3"})
	copied("a sight later", nil)
}

// TestReturn: what the kernel refuses to put back is tried ever more rarely; one that an owner or the kernel does not
// take stays so although it was put back meanwhile. Where nothing of ours is found, it is not tried again.
func TestReturn(t *testing.T) {
	l := New()
	l.See(t0, cpus, Sight{InFile: "0-3"})
	write(l, t0, "0-3", "2-3", false)
	refuse := func(restore bool) {
		l.Learn(t0,
			[]plan.Result{{Change: plan.Change{Cgroup: cpus.ID, Knob: cpus.Knob, Restore: restore},
				Outcome: plan.Refused, Err: "no"}})
	}
	restores := func(after time.Duration) int {
		return len(l.Restores(t0.Add(after), nil, func(plan.Key) bool { return true }))
	}
	plans := func(after time.Duration) int {
		return len(l.Plan(t0.Add(after), []plan.Intent{{Key: cpus, Value: "1"}}))
	}
	refuse(false)
	if restores(0) != 1 {
		t.Error("not put back, as another value was refused")
	}
	refuse(true)
	if restores(firstCPUsGap-1) != 0 || restores(firstCPUsGap) != 1 {
		t.Error("put back at once, or not again")
	}
	l.Learn(t0,
		[]plan.Result{{Change: plan.Change{Cgroup: cpus.ID, Knob: cpus.Knob, To: "0-3", Restore: true},
			Outcome: plan.Skipped, InForce: "0-3"}})
	if restores(time.Hour) != 0 {
		t.Error("put back once more")
	}
	if plans(firstCPUsGap-1) != 0 || plans(firstCPUsGap) != 1 {
		t.Error("what was refused is written at once, or never")
	}
}
