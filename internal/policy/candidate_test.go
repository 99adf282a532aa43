package policy

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// TestQuotaBesideExclusiveCPUs: a group with exclusive CPUs has no quota, unless it is paused, another program wrote
// the quota or the kernel refused that; and without them it has its limit again.
func TestQuotaBesideExclusiveCPUs(t *testing.T) {
	const none = cpu.Unlimited
	for name, c := range map[string]struct {
		own     bool
		inFile  time.Duration
		blocked plan.Blocked
		paused  bool
		want    time.Duration
	}{
		"it has them":              {true, 50 * ms, plan.Free, false, none},
		"for a while":              {true, none, plan.Free, false, none},
		"and is paused":            {true, none, plan.Free, true, 50 * ms},
		"from the start":           {true, 50 * ms, plan.Free, true, 50 * ms},
		"another program wrote it": {true, 80 * ms, plan.Foreign, false, 80 * ms},
		"the kernel refused that":  {true, 50 * ms, plan.Waiting, false, 50 * ms},
		"and a raise":              {true, 50 * ms, plan.NoRaise, false, 50 * ms},
		"after it had none":        {true, none, plan.NoRaise, false, none},
		"no more":                  {false, none, plan.Free, false, 50 * ms},
		"no more, after a refusal": {false, none, plan.NoRaise, false, 50 * ms},
		"it has none":              {false, 50 * ms, plan.Free, false, 50 * ms},
	} {
		u := raisedTo("/a", 50*ms, c.inFile)
		u.quota, u.Unlimited, u.QuotaBlocked = c.inFile, c.own, c.blocked
		if c.paused {
			u.Paused = "it is paused"
		}
		if u.removeQuota(); u.quota != c.want {
			t.Errorf("%s: %v, want %v", name, u.quota, c.want)
		}
	}
}

// TestRangeOfAQuota: the range that is journalled is that of all raises to come, so that it is journalled once.
func TestRangeOfAQuota(t *testing.T) {
	for to, most := range map[time.Duration]time.Duration{50 * ms: 150 * ms, 70 * ms: 150 * ms, 150 * ms: 150 * ms,
		200 * ms: 200 * ms} {
		u, out := raisedTo("/a", 50*ms, 50*ms), newOutput()
		u.Strategy.CFSQuotaBurstPercent = 300
		out.add(u, plan.Quota, to, KindRaise, "")
		if in := out.Intents[0]; in.Min != plan.Time(50*ms) || in.Max != plan.Time(most) {
			t.Errorf("to %v: between %s and %s, want up to %v", to, in.Min, in.Max, most)
		}
	}
}

// TestResizeForgetsDemand: the demand below another limit says nothing of this one.
func TestResizeForgetsDemand(t *testing.T) {
	for _, resized := range []bool{false, true} {
		s := NewState(0)
		for i, used := range []time.Duration{0, 5 * time.Second, 5 * time.Second} {
			turn(s, t0.Add(time.Duration(min(i, 1))*time.Second), func(g *Group) {
				g.Reading.Counters.Usage = used
				g.Resized = resized && i == 2
			})
		}
		m := s.groups[workload.ID{Path: "/a", Inode: 1}]
		if kept := m.history.Peak(100*ms, demandSpan) > 0; kept == resized {
			t.Errorf("resized %v: the demand is up to %v", resized, m.history.Peak(100*ms, demandSpan))
		}
	}
}

// TestBudgetIsNotRenewed: who changes the annotation or the limit of a container whose budget is used up has nothing of
// it, also by way of a capacity of nothing. Only time below the limit fills it.
func TestBudgetIsNotRenewed(t *testing.T) {
	for name, change := range map[string]func(*Group){
		"nothing":        func(*Group) {},
		"fewer seconds":  func(g *Group) { g.Strategy.CFSQuotaBurstPeriodSeconds = 9 },
		"a lower cap":    func(g *Group) { g.Strategy.CFSQuotaBurstPercent = 299 },
		"no time at all": func(g *Group) { g.Strategy.CFSQuotaBurstPeriodSeconds = 0 },
		"a resize by 1m": func(g *Group) {
			g.Limit.Quota, g.Disk.Quota, g.Resized = 50*ms+ms/10, 50*ms+ms/10, true
		},
	} {
		s, now := NewState(0), t0
		usage := time.Duration(0)
		left := func(wait, used time.Duration, change func(*Group)) time.Duration {
			now, usage = now.Add(wait), usage+used
			turn(s, now, func(g *Group) {
				g.Strategy.CFSQuotaBurstPercent, g.Strategy.CFSQuotaBurstPeriodSeconds = 300, 10
				g.Reading.Counters.Usage = usage
				change(g)
			})
			return s.groups[workload.ID{Path: "/a", Inode: 1}].budget.left()
		}
		same := func(*Group) {}
		left(0, 0, same)
		if full := left(100*ms, 50*ms, same); full != 10*time.Second {
			t.Fatalf("%v at the start", full)
		}
		left(time.Second, 11*time.Second, same) // half a second of it is within the limit
		if got := left(time.Millisecond, time.Millisecond, change); got != 0 {
			t.Errorf("%s: %v are left", name, got)
		}
		if got := left(time.Millisecond, time.Millisecond, same); got != 0 {
			t.Errorf("%s and back: %v are left", name, got)
		}
		if got := left(20*time.Second, 0, same); got < 9*time.Second {
			t.Errorf("%s and ten seconds of CPU time unused: %v are left", name, got)
		}
	}
}

// TestWhatOthersRaisedIsNotTakenBack: nor does it count as taken back, instead of what is ours.
func TestWhatOthersRaisedIsNotTakenBack(t *testing.T) {
	s, other, own := NewState(0), raisedTo("/a", 50*ms, 300*ms), raisedTo("/b", 50*ms, 100*ms)
	other.QuotaBlocked = plan.Foreign
	for _, u := range []*candidate{other, own} {
		u.Strategy, u.quota = strategy.Strategy{Policy: strategy.Auto, CFSQuotaBurstPercent: 600}, u.Disk.Quota
	}
	s.takeBack(Input{Now: t0}, Node{Known: true, CPUs: 4, Capacity: 4, Used: 3, ThresholdPercent: 50},
		[]*candidate{other, own})
	if other.quota != 300*ms || own.quota != 50*ms || own.kind != KindGuard {
		t.Errorf("another program's quota is %v, ours %v (%s)", other.quota, own.quota, own.kind)
	}
}

// TestLoweredCap: a raise that stands is lowered to a cap that was lowered, however little that is.
func TestLoweredCap(t *testing.T) {
	u := raisedTo("/a", 50*ms, 150*ms)
	u.Strategy.Policy, u.Strategy.CFSQuotaBurstPercent = strategy.Auto, 290
	u.m.everThrottled, u.m.throttledAt = true, t0
	in := Input{Now: t0, Subscribed: true, Rules: Rules{Refill: true}}
	if d := u.demand(in); d.quota != 145*ms {
		t.Errorf("%v, %s", d.quota, d.why)
	}
}

// TestHugeBudget: the largest one that may be configured is one.
func TestHugeBudget(t *testing.T) {
	s := strategy.Default()
	s.CFSQuotaBurstPercent, s.CFSQuotaBurstPeriodSeconds = 10_000, 31_536_000
	var b budget
	limit := cpu.Bandwidth{Quota: 800 * ms, Period: 100 * ms}
	b.advance(sample.Usage{From: t0, To: t0.Add(time.Second), Used: time.Minute}, limit, s)
	if b.left() < 50*365*24*time.Hour {
		t.Errorf("%v are left", b.left())
	}
}

// TestRaiseWithinTheBudget: a raise is by no more than what is left of the budget.
func TestRaiseWithinTheBudget(t *testing.T) {
	for left, want := range map[time.Duration]plan.Value{time.Second: "64.9ms", 10 * ms: "60ms"} {
		s := NewState(0)
		bounded := func(g *Group) { g.Strategy.CFSQuotaBurstPeriodSeconds = 1 }
		turn(s, t0, bounded)
		s.groups[workload.ID{Path: "/a", Inode: 1}].budget = budget{bounded: true, capacity: time.Second,
			missing: time.Second - left}
		out := turn(s, t0.Add(100*ms), func(g *Group) {
			bounded(g)
			g.Disk.Burst, g.Strategy.CPUBurstPercent = 0, 0
			g.Reading.Counters = cpu.Counters{HasUsage: true, Usage: 50 * ms, Periods: 1, Throttled: 1,
				ThrottledTime: 9 * ms}
		})
		if v := out.Views[0]; plan.Time(v.RequestedQuota) != want {
			t.Errorf("%v left: %v, want %s (%s)", left, v.RequestedQuota, want, v.Why)
		}
	}
}

// TestGoneGroupHoldsNothing of what bounds allow, and another program's burst is left alone.
func TestGoneGroupHoldsNothing(t *testing.T) {
	s, id := NewState(0), workload.ID{Path: "/gone"}
	in := Input{Now: t0, Extra: extra(5, 5, 1)}
	s.extra.Bound(in.Extra)
	s.extra.Hold(id, tenant.Owner{}, 1, t0, 100*ms)
	in.Gone = []workload.ID{id}
	s.observe(in)
	if left, _ := s.extra.Left(workload.ID{Path: "/a"}, tenant.Owner{}); left != 1 {
		t.Errorf("%v CPUs are left", left)
	}
	for blocked, want := range map[plan.Blocked]time.Duration{plan.Free: 10 * ms, plan.Foreign: 40 * ms} {
		u := raisedTo("/a", 50*ms, 50*ms)
		u.Disk.Burst, u.limit.Burst, u.BurstBlocked = 40*ms, 10*ms, blocked
		if _, buffer := u.burst(t0, Rules{Burst: true}); buffer != want {
			t.Errorf("blocked %q: a burst of %v, want %v", blocked, buffer, want)
		}
	}
}

// TestRestoreInAnOverload: what is paused goes back to its limit at once, and its owner's value is put back. What it
// used above its limit counts as taken back: no other raise is, until the overload lasts a second.
func TestRestoreInAnOverload(t *testing.T) {
	s, usage := NewState(0), time.Duration(0)
	at := func(after time.Duration, used float64, paused string) Output {
		in := Input{Now: t0.Add(after), Rules: Rules{Burst: true},
			Node: Node{Known: true, CPUs: 4, Capacity: 4, Used: used, ThresholdPercent: 50}}
		usage += 150 * ms
		for _, path := range []string{"/a", "/b"} {
			g := Group{ID: workload.ID{Path: path}, Strategy: strategy.Default(), Ready: true, Looked: true,
				Limit:   cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
				Disk:    cpu.Bandwidth{Quota: 150 * ms, Period: 100 * ms},
				Reading: sample.Reading{At: in.Now, Counters: cpu.Counters{HasUsage: true, Usage: usage}}}
			g.Strategy.Policy = strategy.Auto
			if path == "/a" {
				g.Paused = paused
			}
			in.Pods = append(in.Pods, Pod{Ceiling: 8, Containers: []Group{g}})
		}
		return s.Decide(in)
	}
	at(0, 0.5, "")
	at(100*ms, 0.5, "")
	for after := 200 * ms; after <= 1500*ms; after += 100 * ms {
		out := at(after, 2.5, "it is paused")
		if after < NodeSpan && len(s.relief) != 1 {
			t.Errorf("after %v: counted %d times", after, len(s.relief))
		}
		var own []plan.Intent
		for _, in := range out.Intents {
			if in.Path == "/a" && in.Knob == plan.Quota {
				own = append(own, in)
			}
		}
		if len(own) != 1 || own[0].Value != "50ms" || !own[0].Release {
			t.Errorf("after %v: %+v, want the limit back", after, own)
		}
		if guarded := strings.HasPrefix(out.Views[1].Why, "node uses"); guarded != (after >= 1200*ms) {
			t.Errorf("after %v: the other one: %s", after, out.Views[1].Why)
		}
	}
}

// TestRaiseBesideABlockedBurst: where a burst of 40 ms may not be written, quota and burst together stay within the cap
// of 150 ms, too. Three periods were throttled, and little was used since then.
func TestRaiseBesideABlockedBurst(t *testing.T) {
	for _, c := range []struct {
		quota   time.Duration // in the file
		blocked plan.Blocked
		percent int64 // cpuBurstPercent
		used    time.Duration
		want    plan.Value
	}{
		{50 * ms, plan.Free, 1000, 0, "150ms"},
		{50 * ms, plan.Foreign, 1000, 0, "110ms"},
		{50 * ms, plan.Waiting, 1000, 0, "110ms"},
		{50 * ms, plan.NoRaise, 20, 40 * ms, "100ms"}, // the burst is lowered to 10 ms
		{150 * ms, plan.Foreign, 1000, 0, "110ms"},
		{50 * ms, plan.Foreign, 20, 40 * ms, "70ms"}, // what is used, the burst and the quota are the cap
	} {
		s, now := NewState(0), cpu.Counters{HasUsage: true}
		var out Output
		for i := range 5 {
			switch i {
			case 1, 2, 3:
				now.Usage, now.ThrottledTime = now.Usage+c.quota, now.ThrottledTime+200*ms
				now.Periods, now.Throttled = now.Periods+1, now.Throttled+1
			case 4:
				now.Usage += c.used
			}
			out = turn(s, t0.Add(time.Duration(i)*100*ms), func(g *Group) {
				g.Strategy.CPUBurstPercent, g.BurstBlocked = c.percent, c.blocked
				g.Disk.Quota, g.Disk.Burst, g.Reading.Counters = c.quota, 40*ms, now
			})
		}
		got := plan.Value("none")
		for _, in := range out.Intents {
			if in.Knob == plan.Quota {
				got = in.Value
			}
		}
		if got != c.want {
			t.Errorf("%+v: quota %s (%s)", c, got, out.Views[0].Why)
		}
	}
}
