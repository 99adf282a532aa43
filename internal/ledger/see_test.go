package ledger

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/golden"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

var (
	t0  = time.Unix(1000, 0)
	key = plan.Key{ID: workload.ID{Path: "/a", Inode: 1}, Knob: plan.Quota}
)

// The values of the table: what stood there before, what the agent wrote, what its owner wants from now on,
// and another one.
const (
	before = plan.Value("100ms")
	ours   = plan.Value("300ms")
	wanted = plan.Value("40ms")
	other  = plan.Value("70ms")
)

func word(v plan.Value) string {
	return map[plan.Value]string{"": "-", before: "before", ours: "ours", wanted: "wanted", other: "other"}[v]
}

// in makes a ledger whose one file is in a state that lasts since t0.
func in(s State) *Ledger {
	l := New()
	l.entries[key] = &Entry{State: s, Baseline: before, InFile: before, since: t0}
	e := l.entries[key]
	switch s {
	case Ours, Provisional:
		e.Wrote, e.InFile = ours, ours
	case Lost:
		e.Baseline = wanted
	case Foreign:
		e.InFile, e.report = other, Overrode
	}
	return l
}

// sights calls f with every combination of what is known of a file, what it holds,
// what is declared and what is about to be.
func sights(f func(s State, sight Sight)) {
	for _, s := range []State{Untouched, Ours, Provisional, Late, Lost, Foreign} {
		for _, held := range []plan.Value{before, ours, wanted, other} {
			for _, declared := range []plan.Value{"", before, ours, wanted} {
				for _, next := range []plan.Value{"", ours, wanted} {
					if next == "" || declared != "" && declared != next { // who declares what is next declares what is
						f(s, Sight{InFile: held, Declared: declared, Next: next})
					}
				}
			}
		}
	}
}

// TestEverySight: the answer to every combination, as it is on record in testdata/sights.txt. A sight comes lostAfter
// after the state began.
func TestEverySight(t *testing.T) {
	var got bytes.Buffer
	fmt.Fprintf(&got, "%-12s%-8s%-10s%-8s -> %-12s%-10s%s\n", "was", "holds", "declared", "next", "is", "baseline",
		"event")
	sights(func(s State, sight Sight) {
		l := in(s)
		event := l.See(t0.Add(lostAfter), key, sight)
		e, _ := l.Entry(key)
		fmt.Fprintf(&got, "%-12s%-8s%-10s%-8s -> %-12s%-10s%s\n", s, word(sight.InFile), word(sight.Declared),
			word(sight.Next), e.State, word(e.Baseline), event)
	})
	golden.File(t, "sights.txt", got.String())
}

// TestRulesOfSights: what is true of every answer, whatever the table says.
func TestRulesOfSights(t *testing.T) {
	sights(func(s State, sight Sight) {
		l := in(s)
		l.See(t0.Add(lostAfter), key, sight)
		e, _ := l.Entry(key)
		fail := func(rule string) {
			t.Errorf("%s, %+v: %s, baseline %s: %s", s, sight, e.State, word(e.Baseline), rule)
		}
		switch {
		case sight.InFile == sight.Declared && (e.State != Untouched || e.Baseline != sight.InFile):
			fail("what its owner declares and the file holds is the owner's")
		case e.Ours() && sight.InFile != ours:
			fail("a value is ours that is not the one that was written last")
		case sight.InFile == other && sight.Declared != "" && e.State != Foreign:
			fail("a value that nobody declared is foreign")
		case e.State == Lost && sight.Next != "" && s != Lost:
			fail("lost, while its owner is at work")
		case sight.Next == ours && sight.InFile == ours && s == Ours && e.State != Provisional:
			fail("equality with a value of ours is provisional until the owner confirms")
		}
		for _, value := range []plan.Value{before, ours, wanted, other} {
			for _, c := range l.Plan(t0.Add(time.Hour), []plan.Intent{{Key: key, Value: value}}) {
				switch {
				case c.From != sight.InFile:
					fail("a change from what the file does not hold")
				case e.State == Foreign || e.State == Provisional:
					fail("written")
				case c.Repair != (e.State == Lost && value == sight.Declared):
					fail("only what is declared and lost is repaired")
				}
			}
		}
	})
}

// TestForeignIsReportedOnce: when it has stood for a moment, for an owner may write a limit before it declares it.
func TestForeignIsReportedOnce(t *testing.T) {
	l := in(Ours)
	sight := Sight{InFile: other, Declared: before}
	for at, want := range map[time.Duration]Event{0: None, settling - 1: None} {
		if got := l.See(t0.Add(at), key, sight); got != want {
			t.Errorf("after %v: %q", at, got)
		}
	}
	if got := l.See(t0.Add(2*settling), key, sight); got != Overrode {
		t.Errorf("%q, want %q", got, Overrode)
	}
	if got := l.See(t0.Add(time.Minute), key, sight); got != None {
		t.Errorf("said %q a second time", got)
	}
	if got := l.See(t0.Add(time.Hour), key, Sight{InFile: other, Declared: other}); got != Resized {
		t.Errorf("declared at last: %q", got)
	}
}

// TestFirstSight: what the file holds is the baseline, and a deviation where another value is declared.
func TestFirstSight(t *testing.T) {
	for _, c := range []struct {
		sight Sight
		state State
		base  plan.Value
		event Event // within a second
	}{
		{Sight{InFile: before}, Untouched, before, None},
		{Sight{InFile: before, Declared: before}, Untouched, before, None},
		{Sight{InFile: ours, Declared: before}, Foreign, before, Deviation},
		{Sight{InFile: wanted, Declared: before, Next: wanted}, Untouched, wanted, None},
	} {
		l := New()
		first := l.See(t0, key, c.sight)
		event := l.See(t0.Add(settling), key, c.sight)
		if e, _ := l.Entry(key); first != None || event != c.event || e.State != c.state || e.Baseline != c.base {
			t.Errorf("%+v: %q, then %q, %+v", c.sight, first, event, e)
		}
	}
}

// TestLate: the owner has a while to write what it declared; a resize that is under way and one that is written in time
// are no losses.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		next, held plan.Value // 2 s after the declaration
		want       State
	}{
		"not written":     {"", before, Lost},
		"written in time": {"", wanted, Untouched},
		"under way":       {wanted, before, Untouched},
	} {
		l := in(Untouched)
		l.See(t0, key, Sight{InFile: before, Declared: wanted})
		l.See(t0.Add(2*time.Second), key, Sight{InFile: c.held, Declared: wanted, Next: c.next})
		l.See(t0.Add(lostAfter), key, Sight{InFile: c.held, Declared: wanted, Next: c.next})
		if e, _ := l.Entry(key); e.State != c.want {
			t.Errorf("%s: %s, want %s", name, e.State, c.want)
		}
	}
}

// TestUndone: a declared value that was lost may have been undone by a refill,
// if one was made about when it was declared.
func TestUndone(t *testing.T) {
	for refill, want := range map[time.Duration]bool{-6 * time.Second: false, -4 * time.Second: true,
		time.Second: true} {
		l := in(Untouched)
		burst := plan.Key{ID: key.ID, Knob: plan.Burst}
		l.See(t0, burst, Sight{InFile: "0s"})
		for at := -10 * time.Second; at <= lostAfter; at += time.Second {
			sight := Sight{InFile: before, Declared: before}
			if at >= 0 {
				sight.Declared = wanted
			}
			l.See(t0.Add(at), key, sight)
			if at == refill {
				l.Learn(t0.Add(at),
					[]plan.Result{{Change: plan.Change{Cgroup: key.ID, Knob: plan.Burst, Refill: true},
						Outcome: plan.Applied, InForce: "0s"}})
			}
		}
		if e, _ := l.Entry(key); e.State != Lost || e.Undone() != want {
			t.Errorf("a refill at %v: %s, undone %v, want %v", refill, e.State, e.Undone(), want)
		}
	}
}

// TestBurstComesBack: a burst that we replaced is still ours when an owner's write of the quota has put it back, and is
// replaced again; later it is the owner's.
func TestBurstComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		knob  plan.Knob
		to    plan.Value // what replaces ours
		after time.Duration
		state State
		event Event
		base  plan.Value
	}{
		"restored":        {plan.Burst, before, time.Second, Ours, CameBack, before},
		"made smaller":    {plan.Burst, wanted, time.Second, Ours, CameBack, before},
		"late":            {plan.Burst, before, backWithin + time.Second, Untouched, Resized, ours},
		"a quota, not it": {plan.Quota, before, time.Second, Untouched, Resized, ours},
	} {
		l, k := New(), plan.Key{ID: key.ID, Knob: c.knob}
		at := t0
		write := func(to plan.Value) {
			changes := l.Plan(at, []plan.Intent{{Key: k, Value: to, Release: to == before}})
			l.Learn(at, []plan.Result{{Change: changes[0], Outcome: plan.Applied, InForce: to}})
			at = at.Add(time.Second)
			l.See(at, k, Sight{InFile: to})
		}
		l.See(at, k, Sight{InFile: before})
		write(ours)
		write(c.to)
		event := l.See(at.Add(c.after), k, Sight{InFile: ours})
		if e, _ := l.Entry(k); e.State != c.state || event != c.event || e.Baseline != c.base {
			t.Errorf("%s: %s, baseline %s, %q", name, e.State, word(e.Baseline), event)
		}
		if event == CameBack {
			if again := l.Plan(at.Add(c.after), []plan.Intent{{Key: k, Value: c.to}}); len(again) != 1 ||
				again[0].From != ours {
				t.Errorf("%s: it is not replaced again: %+v", name, again)
			}
		}
	}
}

// TestRounded: a declared value that was rounded up does not replace the exact baseline, which rounds to the same. An
// owner that writes a value that rounds to the same is believed.
func TestRounded(t *testing.T) {
	const exact, raise = plan.Value("12.5ms"), plan.Value("37.5ms")
	for name, c := range map[string]struct {
		ours, held, declared plan.Value
		state                State
		base                 plan.Value
	}{
		"raised":                           {raise, raise, "13ms", Ours, exact},
		"raised by less than the rounding": {"12.7ms", "12.7ms", "12.7ms", Ours, exact},
		"put back":                         {exact, exact, "13ms", Untouched, exact},
		"resized by less":                  {raise, "12.7ms", "12.7ms", Untouched, "12.7ms"},
		"resized":                          {raise, raise, "30ms", Ours, "30ms"},
		"resized, and written":             {raise, "30ms", "30ms", Untouched, "30ms"},
	} {
		l := New()
		l.Adopt(key, exact, c.ours)
		for _, after := range []time.Duration{0, lostAfter, 2 * lostAfter} {
			l.See(t0.Add(after), key,
				Sight{InFile: c.held, Declared: c.declared, Rounded: true, Period: 100 * time.Millisecond})
		}
		if e, _ := l.Entry(key); e.State != c.state || e.Baseline != c.base {
			t.Errorf("%s: %s, baseline %s, want %s, %s", name, e.State, e.Baseline, c.state, c.base)
		}
	}
}
