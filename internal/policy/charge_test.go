package policy

import (
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const ms = time.Millisecond

var t0 = time.Unix(1000, 0)

func TestRoom(t *testing.T) {
	const q, limit = 100 * ms, 300 * ms
	for _, c := range []struct {
		name      string
		p         period
		burst     time.Duration
		rewritten bool
		want      time.Duration
	}{
		{"handed its quota, all of it may be used", period{handed: q, used: q, edge: -1}, 0, false, 200 * ms},
		{"a quiet period: what is used counts", period{handed: 300 * ms, used: 20 * ms, edge: -1}, 0, false, 280 * ms},
		{"what is left survives up to the burst", period{handed: 200 * ms, used: 50 * ms, edge: -1}, q, false,
			150 * ms},
		{"the burst is written too: it is full after", period{handed: 100 * ms, used: 100 * ms, edge: -1}, q, true,
			100 * ms},
		{"three quotas handed: no room", period{handed: 300 * ms, used: 300 * ms, edge: -1}, 0, false, 0},
		{"at the edge: all but what two CPUs use meanwhile", period{handed: 200 * ms, used: 200 * ms, edge: 4 * ms}, 0,
			false, 290 * ms},
		{"at the edge with a burst", period{handed: 200 * ms, used: 200 * ms, edge: 4 * ms}, 50 * ms, false, 240 * ms},
		{"too far from the edge", period{handed: 200 * ms, used: 200 * ms, edge: 60 * ms}, 0, false, 100 * ms},
	} {
		if got := c.p.room(limit, c.burst, c.rewritten, 2); got != c.want {
			t.Errorf("%s: room %v, want %v", c.name, got, c.want)
		}
	}
}

func TestChargeAddsUpWithinAPeriod(t *testing.T) {
	b := cpu.Bandwidth{Quota: 100 * ms, Period: time.Second}
	m := &memory{lastWrite: t0.Add(-time.Hour)}
	m.charge(t0, b, cpu.Bandwidth{Quota: 200 * ms})
	if got := m.currentPeriod(t0.Add(100*ms), cpu.Bandwidth{Quota: 200 * ms,
		Period: time.Second}).handed; got != 300*ms {
		t.Errorf("handed %v after a raise to 200ms, want 300ms", got)
	}
	m.charge(t0.Add(100*ms), cpu.Bandwidth{Quota: 200 * ms, Period: time.Second}, b)
	if got := m.currentPeriod(t0.Add(200*ms), b).handed; got != 400*ms {
		t.Errorf("handed %v after lowering it again, want 400ms", got)
	}
	if got := m.currentPeriod(t0.Add(1200*ms), b).handed; got != 100*ms {
		t.Errorf("handed %v a period later, want 100ms", got)
	}
}

func TestBudget(t *testing.T) {
	limit := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	s := strategy.Default()
	s.CFSQuotaBurstPeriodSeconds = 2
	use := func(cpus float64, elapsed time.Duration) sample.Usage {
		return sample.Usage{From: t0, To: t0.Add(elapsed), Used: time.Duration(cpus * float64(elapsed))}
	}
	var b budget
	b.advance(use(0.5, time.Millisecond), limit, s)
	if got, want := b.left(), 2*time.Second; got != want {
		t.Fatalf("full bucket holds %v, want %v: two seconds at one CPU above the limit", got, want)
	}
	for range 30 { // fractions of a second count in full
		b.advance(use(1.5, 67*ms), limit, s)
	}
	if b.left() != 0 || !b.spent {
		t.Errorf("left %v after two seconds at the cap, want none", b.left())
	}
	b.advance(use(0.5, time.Minute), limit, s)
	if b.left() != 0 {
		t.Error("running at the limit earns nothing")
	}
	b.advance(use(0, time.Second), limit, s)
	if b.left() == 0 {
		t.Error("a second of idling earns half a CPU second")
	}
	b.advance(use(0, time.Hour), limit, s)
	if got := b.left(); got != 2*time.Second {
		t.Errorf("left %v after an hour of idling, want the capacity", got)
	}
	s.CFSQuotaBurstPeriodSeconds = 0
	b.advance(use(0, time.Second), limit, s)
	if b.left() != 0 {
		t.Error("0 seconds allow nothing")
	}
	s.CFSQuotaBurstPeriodSeconds = strategy.Unlimited
	b.advance(use(3, time.Hour), limit, s)
	if b.left() != cpu.Unlimited {
		t.Error("-1 sets no bound")
	}
}

func TestBurstFor(t *testing.T) {
	limit := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	mainline, alinux := Rules{Burst: true}, Rules{Burst: true, BurstAboveQuota: true}
	auto := strategy.Default()
	auto.Policy = strategy.Auto
	half := auto
	half.CPUBurstPercent = 50
	none, capped := strategy.Default(), auto
	capped.CFSQuotaBurstPercent = 100
	for _, c := range []struct {
		name              string
		limit             cpu.Bandwidth
		s                 strategy.Strategy
		quota             time.Duration
		r                 Rules
		requested, target time.Duration
	}{
		{"mainline clamps to the quota", limit, auto, 50 * ms, mainline, 500 * ms, 50 * ms},
		{"Alibaba Cloud Linux takes it all", limit, auto, 50 * ms, alinux, 500 * ms, 500 * ms},
		{"half", limit, half, 50 * ms, mainline, 25 * ms, 25 * ms},
		{"raised to the cap: nothing on top", limit, auto, 150 * ms, mainline, 500 * ms, 0},
		{"raised below the cap: the rest", limit, auto, 120 * ms, mainline, 500 * ms, 30 * ms},
		{"the cap does not bound the buffer alone (CONFIG.md)", limit, capped, 50 * ms, mainline, 500 * ms, 50 * ms},
		{"no burst in this kernel", limit, auto, 50 * ms, Rules{}, 500 * ms, 0},
		{"policy none", limit, none, 50 * ms, mainline, 0, 0},
		{"no limit", cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}, auto, cpu.Unlimited, mainline, 0, 0},
	} {
		requested, target := burstFor(c.limit, c.s, c.quota, c.r)
		if requested != c.requested || target != c.target {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, requested, target, c.requested, c.target)
		}
	}
}

// TestOnlyWhatWasTakenIsCharged: a write that the kernel refused hands out nothing; one of a restore or of a repair
// does, and so does one whose value cannot be read back, or was overwritten.
func TestOnlyWhatWasTakenIsCharged(t *testing.T) {
	of := func(c plan.Change, o plan.Outcome, inForce plan.Value, taken int) plan.Result {
		return plan.Result{Change: c, Outcome: o, InForce: inForce, Taken: taken}
	}
	refill := plan.Change{Knob: plan.Burst, To: "0s", Refill: true}
	restore, repair := plan.Change{Knob: plan.Burst, To: "0s", Restore: true}, plan.Change{Knob: plan.Quota, To: "50ms",
		Repair: true}
	for name, c := range map[string]struct {
		of   plan.Result
		want int // refills, of two that the cap has room for beside nothing else
	}{
		"refused":               {of(refill, plan.Refused, "0s", 0), 2},
		"overwritten before":    {of(refill, plan.Trampled, "9ms", 0), 2},
		"overwritten after":     {of(refill, plan.Trampled, "9ms", 1), 1},
		"back, and tried again": {of(refill, plan.Refused, "9ms", 2), 0},
		"cannot be read back":   {of(refill, plan.Applied, "", 1), 1},
		"nor can a quota":       {of(plan.Change{Knob: plan.Quota, To: "50ms"}, plan.Applied, "", 1), 1},
		"nor a larger one":      {of(plan.Change{Knob: plan.Quota, To: "99ms"}, plan.Applied, "", 1), 0},
		"a refill":              {of(refill, plan.Applied, "0s", 1), 1},
		"a restore":             {of(restore, plan.Applied, "0s", 1), 1},
		"a repair":              {of(repair, plan.Applied, "50ms", 1), 1},
		"another knob":          {of(plan.Change{Knob: plan.Weight, To: "2"}, plan.Applied, "2", 1), 2},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		c.of.Change.Cgroup, c.of.At = r.group.ID, r.event.At.Add(-ms/2)
		r.state.Learn(r.event.At.Add(-ms), []plan.Result{c.of})
		got := 0
		for range 3 {
			for _, in := range r.answer().Intents {
				got++
				r.state.Learn(r.event.At, result(in, plan.Applied, r.event.At))
			}
			r.event.At = r.event.At.Add(10 * ms)
		}
		if got != c.want {
			t.Errorf("%s: %d refills after it, want %d", name, got, c.want)
		}
	}
}

// TestPhaseOfAnotherPeriod: when the period of a group changes, when it began is not known any more, and is not taken
// from an event that has another period than the file was seen to have.
func TestPhaseOfAnotherPeriod(t *testing.T) {
	s, id := NewState(0), workload.ID{Path: "/a", Inode: 1}
	read := func(after, period time.Duration) {
		turn(s, t0.Add(after), func(g *Group) { g.Disk.Period = period })
	}
	known := func(want bool, when string) {
		t.Helper()
		if _, is := s.groups[id].phase.Known(); is != want {
			t.Errorf("%s: the phase is known: %v", when, is)
		}
	}
	told := func(period time.Duration) {
		b := cpu.Bandwidth{Quota: 50 * ms, Period: period}
		s.groups[id].bookThrottle(bandwidth.Throttle{At: t0, Bandwidth: b, Expires: t0.Add(5 * ms)}, false)
	}
	read(0, 100*ms)
	told(100 * ms)
	read(10*ms, 100*ms)
	known(true, "the same period")
	read(20*ms, 10*ms)
	known(false, "another one")
	told(100 * ms)
	known(false, "an event of the one before")
	told(10 * ms)
	known(true, "an event of this one")
}
