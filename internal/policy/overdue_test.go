package policy

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// TestOverdueLowering: a lowering that may not be written now waits for patience, and a period longer where the period
// is known. Then it is written, without a burst that a period with two writes would grant, and charged to the budget.
func TestOverdueLowering(t *testing.T) {
	const capacity = 10 * time.Second
	for _, c := range []struct {
		name   string
		known  bool
		waited time.Duration
		writes bool
	}{
		{"at first", false, 0, false},
		{"until patience ends", false, patience - ms, false},
		{"after that", false, patience, true},
		{"where the period is known", true, patience, false},
		{"and one period later", true, patience + 100*ms, true},
	} {
		b := cpu.Bandwidth{Quota: 150 * ms, Period: 100 * ms}
		u := &candidate{Group: Group{Disk: b}, limit: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}, buffer: 40 * ms,
			decision: decision{quota: 50 * ms},
			m:        &memory{overdue: t0, budget: budget{bounded: true, capacity: capacity}}}
		if c.waited == 0 {
			u.m.overdue = time.Time{}
		}
		u.wait(Input{Now: t0.Add(c.waited), Rules: Rules{Burst: true}}, c.known)
		want, left := b.Quota, capacity
		if c.writes {
			want, left = 50*ms, capacity-50*ms
		}
		if u.quota != want || u.m.budget.left() != left || strings.HasSuffix(u.why, Overdue) != c.writes {
			t.Errorf("%s: quota %v, %v left, %q; want %v and %v", c.name, u.quota, u.m.budget.left(), u.why, want, left)
		}
		if u.buffer > 0 {
			t.Errorf("%s: a burst of %v is written too", c.name, u.buffer)
		}
		if u.m.overdue.IsZero() {
			t.Errorf("%s: forgot since when it waits", c.name)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		policy         strategy.Policy
		rules          Rules
		part           float64
		saved, raise   float64 // requested
		burst, raising int64
	}{
		{strategy.Auto, Rules{Burst: true}, 0, 1, 2, 1000, 300},
		{strategy.Auto, Rules{Burst: true}, 0.5, 1, 2, 100, 200},
		{strategy.Auto, Rules{Burst: true}, 0.75, 1, 2, 50, 150},
		{strategy.Auto, Rules{Burst: true}, 1, 1, 2, 0, 100},
		{strategy.CPUBurstOnly, Rules{Burst: true}, 0.5, 1, 0, 50, 200},
		{strategy.CPUBurstOnly, Rules{Burst: true, BurstAboveQuota: true}, 0.5, 10, 0, 500, 200},
		{strategy.CPUBurstOnly, Rules{}, 0.5, 0, 0, 0, 200},
		{strategy.None, Rules{Burst: true}, 0.5, 0, 0, 0, 200},
	} {
		s := strategy.Default()
		s.Policy, s.StartupBurstPercent = c.policy, 500
		got := cut(s, c.part, c.rules)
		if want := 500 - int64(400*c.part); got.StartupBurstPercent != want {
			t.Errorf("%s, %v off: cap of a start %d %%, want %d", c.policy, c.part, got.StartupBurstPercent, want)
		}
		saved, raise := Requested(s, c.rules)
		if saved != c.saved || raise != c.raise || got.CPUBurstPercent != c.burst ||
			got.CFSQuotaBurstPercent != c.raising {
			t.Errorf("%s, %v off: requested %v and %v, burst %d %%, cap %d %%; want %v, %v, %d, %d", c.policy, c.part,
				saved, raise, got.CPUBurstPercent, got.CFSQuotaBurstPercent, c.saved, c.raise, c.burst, c.raising)
		}
	}
}

// TestLateReading: of two throttles that are read together, since the agent stood still, the first is over, and the
// second is answered.
func TestLateReading(t *testing.T) {
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	first := r.event
	first.At, first.Expires = r.event.At.Add(-90*ms), r.event.At.Add(-40*ms)
	out := r.state.AnswerThrottles(r.input(r.event.At), []bandwidth.Throttle{first, r.event})
	if len(out.Intents) != 1 {
		t.Errorf("not refilled: %+v", out.Views)
	}
}

// TestReadTooLate: a throttle that was worth a refill as it began, and is not when it is read, is counted apart.
func TestReadTooLate(t *testing.T) {
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	out := r.state.AnswerThrottles(r.input(r.event.Expires.Add(-ms)), []bandwidth.Throttle{r.event})
	if len(out.Intents) != 0 || out.Kinds[KindRefusedLate] != 1 ||
		!strings.HasSuffix(out.Views[0].Why, "its period ends, 59ms after it began") {
		t.Errorf("%v: %+v", out.Kinds, out.Views)
	}
}

// refusedAs is the kind of a refusal, by its words.
func refusedAs(why string) Kind {
	for words, kind := range map[string]Kind{"the cap": KindRefusedCap, "budget": KindRefusedBudget,
		"too many writes": KindRefusedWrites, "its period ends": KindRefusedShort, "use is above": KindRefusedNode,
		"no headroom": KindRefusedNode, "above 90 %": KindRefusedNode, "not measured": KindRefusedNode} {
		if strings.Contains(why, words) {
			return kind
		}
	}
	return KindRefusedOther
}
