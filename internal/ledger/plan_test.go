package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
)

// TestPlan: an intent becomes a change of what the file holds, where that is another value and may be written.
func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		state State
		in    plan.Intent
		want  *plan.Change
	}{
		"a raise": {Untouched, plan.Intent{Value: ours, Why: "demand"},
			&plan.Change{From: before, To: ours, Why: "demand"}},
		"what stands": {Ours, plan.Intent{Value: ours}, nil},
		"a refill": {Untouched, plan.Intent{Value: before, Refill: true},
			&plan.Change{From: before, To: before, Refill: true}},
		"back, for a while": {Ours, plan.Intent{Value: before}, &plan.Change{From: ours, To: before}},
		"back, for good": {Ours, plan.Intent{Value: before, Release: true},
			&plan.Change{From: ours, To: before, Restore: true}},
		"another's":   {Foreign, plan.Intent{Value: ours}, nil},
		"provisional": {Provisional, plan.Intent{Value: before}, nil},
		"in its owner's place": {Lost, plan.Intent{Value: wanted, Release: true},
			&plan.Change{From: before, To: wanted, Repair: true}},
		"above what is in force": {Lost, plan.Intent{Value: ours}, &plan.Change{From: before, To: ours}},
	} {
		c.in.Key = key
		got := in(c.state).Plan(t0, []plan.Intent{c.in})
		var want []plan.Change
		if c.want != nil {
			c.want.Cgroup, c.want.Knob = key.ID, key.Knob
			want = append(want, *c.want)
		}
		if len(got)+len(want) > 0 {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	}
}

// TestWaits: longer each time that the owner puts its value back or the kernel refuses a write, and anew after a calm
// time. Of CPUs longer than the kubelet takes to put its own back.
func TestWaits(t *testing.T) {
	for knob, gaps := range map[plan.Knob][2]time.Duration{plan.Quota: {firstGap, maxGap},
		plan.SubtreeControl: {firstGap, maxGap},
		plan.CPUs:           {firstCPUsGap, maxCPUsGap}, plan.Exclusive: {firstCPUsGap,
			maxCPUsGap}, plan.Partition: {firstCPUsGap, maxCPUsGap}} {
		key := plan.Key{ID: key.ID, Knob: knob}
		result := func(o plan.Outcome) []plan.Result {
			return []plan.Result{{Change: plan.Change{Cgroup: key.ID, Knob: knob, To: ours}, Outcome: o, InForce: ours}}
		}
		for name, disturb := range map[string]func(l *Ledger, now time.Time){
			"reset": func(l *Ledger, now time.Time) {
				l.Learn(now, result(plan.Applied))
				l.See(now, key, Sight{InFile: before})
			},
			"refused": func(l *Ledger, now time.Time) { l.Learn(now, result(plan.Refused)) },
		} {
			l, now := New(), t0
			l.See(now, key, Sight{InFile: before})
			waits := func(want time.Duration) {
				t.Helper()
				disturb(l, now)
				for at, free := range map[time.Duration]bool{want - 1: false, want: true} {
					if got := len(l.Plan(now.Add(at), []plan.Intent{{Key: key, Value: ours}})) == 1; got != free {
						t.Errorf("%s of %s: written after %v: %v", name, knob, at, got)
					}
				}
				now = now.Add(want)
			}
			first, most := gaps[0], gaps[1]
			for _, want := range []time.Duration{first, 2 * first, 4 * first} {
				waits(want)
			}
			now = now.Add(2*most + time.Second)
			waits(first)
		}
	}
}

// TestRefusedRaise: a refused raise of a quota delays raises only; a refused lowering delays every write.
func TestRefusedRaise(t *testing.T) {
	for _, c := range []struct {
		refused, to plan.Value
		want        plan.Blocked
		written     bool
	}{
		{"400ms", "500ms", plan.NoRaise, false},
		{"400ms", "200ms", plan.NoRaise, true},
		{"400ms", before, plan.NoRaise, true},
		{"200ms", "500ms", plan.Waiting, false},
		{"200ms", before, plan.Waiting, false},
	} {
		l := New()
		l.Adopt(key, before, ours)
		l.See(t0, key, Sight{InFile: ours})
		refused := plan.Change{Cgroup: key.ID, Knob: key.Knob, From: ours, To: c.refused}
		l.Learn(t0, []plan.Result{{Change: refused, Outcome: plan.Refused}})
		e, _ := l.Entry(key)
		written := len(l.Plan(t0, []plan.Intent{{Key: key, Value: c.to}})) == 1
		if blocked := e.Blocked(t0); blocked != c.want || written != c.written {
			t.Errorf("%s refused, then %s: %q, written %v", c.refused, c.to, blocked, written)
		}
	}
}

// TestAdopt: what another agent wrote is ours, and goes back to the baseline.
func TestAdopt(t *testing.T) {
	l := New()
	l.Adopt(key, before, ours)
	if event := l.See(t0, key, Sight{InFile: ours, Declared: before}); event != None {
		t.Errorf("%q", event)
	}
	if e, _ := l.Entry(key); !e.Ours() || e.Baseline != before {
		t.Errorf("%+v", e)
	}
	l.Drop(key.ID, plan.Quota)
	if _, known := l.Entry(key); known {
		t.Error("known after it was dropped")
	}
	l.Adopt(key, before, before) // the write had not come to it
	if e, _ := l.Entry(key); e.Ours() || len(l.Restores(t0, nil, func(plan.Key) bool { return true })) > 0 {
		t.Errorf("the owner's value counts as ours: %+v", e)
	}
}

// TestRefusalOutlastsAResize: another limit is no reason to try at once what the kernel refused; but an owner that
// writes over another program's value begins anew.
func TestRefusalOutlastsAResize(t *testing.T) {
	for state, want := range map[State]plan.Blocked{Untouched: plan.Waiting, Ours: plan.Waiting, Lost: plan.Waiting,
		Foreign: plan.Free} {
		l := in(state)
		e := l.entries[key]
		e.delay(&e.Retry, t0)
		event := l.See(t0, key, Sight{InFile: wanted, Declared: wanted})
		if got := e.Blocked(t0); event != Resized || got != want {
			t.Errorf("%s: %q, blocked %q, want %q", state, event, got, want)
		}
	}
}
