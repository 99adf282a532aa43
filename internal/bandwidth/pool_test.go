package bandwidth

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

const ms = time.Millisecond

func limit(quota, burst time.Duration) cpu.Bandwidth {
	return cpu.Bandwidth{Quota: quota, Period: 100 * ms, Burst: burst}
}

func pool(quota, burst time.Duration) Pool {
	p := New()
	p.Set(limit(quota, burst))
	return p
}

func TestFreshPoolIsUnlimited(t *testing.T) {
	p := New()
	if got := p.Take(time.Hour); got != time.Hour || p.Empty() || p.Active() {
		t.Errorf("Take = %v, Empty = %v, Active = %v; want an hour, false, false", got, p.Empty(), p.Active())
	}
}

func TestTakeGivesWhatThereIs(t *testing.T) {
	p := pool(50*ms, 0)
	if got := p.Take(30 * ms); got != 30*ms {
		t.Errorf("first Take = %v, want 30ms", got)
	}
	if got := p.Take(30 * ms); got != 20*ms {
		t.Errorf("second Take = %v, want the 20ms that are left", got)
	}
	if !p.Empty() || p.Take(ms) != 0 {
		t.Error("an empty pool gave something")
	}
}

func TestRefill(t *testing.T) {
	for _, c := range []struct {
		name               string
		quota, burst, take time.Duration
		want               time.Duration
	}{
		{"unused, no burst", 50 * ms, 0, 0, 50 * ms},
		{"used up, no burst", 50 * ms, 0, 50 * ms, 50 * ms},
		{"unused, burst", 50 * ms, 30 * ms, 0, 80 * ms},
		{"part used, burst not full", 50 * ms, 40 * ms, 30 * ms, 70 * ms},
		{"part used, burst full", 50 * ms, 10 * ms, 30 * ms, 60 * ms},
	} {
		p := pool(c.quota, c.burst)
		p.Take(c.take)
		p.Expire(false)
		if p.Runtime() != c.want {
			t.Errorf("%s: runtime = %v, want %v", c.name, p.Runtime(), c.want)
		}
	}
}

// Every write refills and so ends a throttle, also one that changes nothing (kernel/sched/core.c,
// tg_set_cfs_bandwidth).
func TestEveryWriteRefills(t *testing.T) {
	p := pool(50*ms, 0)
	used := p.Take(cpu.Unlimited)
	for range 9 {
		p.Set(p.Bandwidth())
		used += p.Take(cpu.Unlimited)
	}
	if used != 500*ms {
		t.Errorf("nine rewrites within a period: used %v, want ten quotas", used)
	}
}

// A quota of Q that is raised to 3Q when spent, and lowered when that is spent, runs 5Q in the period.
func TestRaiseAndLowerGrantFiveQuotas(t *testing.T) {
	p := pool(100*ms, 0)
	used := p.Take(cpu.Unlimited)
	p.Set(limit(300*ms, 0))
	used += p.Take(cpu.Unlimited)
	p.Set(limit(100*ms, 0))
	used += p.Take(cpu.Unlimited)
	if used != 500*ms {
		t.Errorf("used %v, want 500ms", used)
	}
}

func TestLoweringCapsWhatIsLeft(t *testing.T) {
	p := pool(300*ms, 0)
	p.Set(limit(100*ms, 20*ms))
	if p.Runtime() != 120*ms {
		t.Errorf("runtime = %v, want the new quota and burst", p.Runtime())
	}
}

func TestCounts(t *testing.T) {
	p := pool(20*ms, 20*ms)
	p.Expire(false) // nothing used: the bank fills to 40
	p.Take(35 * ms)
	p.Expire(false) // 15 of them were saved quota
	p.Take(cpu.Unlimited)
	p.Expire(true)
	want := Counts{Periods: 3, Throttled: 1, Bursts: 2, BurstTime: 20 * ms}
	if p.Counts() != want {
		t.Errorf("counts = %+v, want %+v", p.Counts(), want)
	}
}

func TestTimerRestsAfterAnIdlePeriod(t *testing.T) {
	p := pool(20*ms, 20*ms)
	p.Take(20 * ms)
	for range 5 {
		p.Expire(false)
	}
	if p.Active() || p.Counts().Periods != 2 {
		t.Errorf("active = %v after %d periods; want rest after the second", p.Active(), p.Counts().Periods)
	}
	if p.Runtime() != 40*ms {
		t.Errorf("runtime = %v at rest, want a full bank", p.Runtime())
	}
	for range 3 {
		p.Take(ms)
		p.Expire(false)
		if !p.Active() {
			t.Error("the timer rests after a period with a use")
		}
	}
}

func TestUnlimitedStopsTheTimer(t *testing.T) {
	p := pool(20*ms, 0)
	p.Set(limit(cpu.Unlimited, 0))
	p.Expire(false)
	if p.Active() || p.Counts().Periods != 0 {
		t.Errorf("active = %v, periods = %d; want none", p.Active(), p.Counts().Periods)
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		name   string
		demand []time.Duration
		b      cpu.Bandwidth
		want   bool
	}{
		{"nothing", nil, limit(20*ms, 0), true},
		{"exactly the quota", []time.Duration{20 * ms, 20 * ms}, limit(20*ms, 0), true},
		{"one above", []time.Duration{20 * ms, 21 * ms}, limit(20*ms, 0), false},
		{"the bank starts empty", []time.Duration{35 * ms}, limit(20*ms, 20*ms), false},
		{"saved first", []time.Duration{0, 35 * ms}, limit(20*ms, 20*ms), true},
		{"saved once, wanted twice", []time.Duration{0, 35 * ms, 35 * ms}, limit(20*ms, 20*ms), false},
		{"the bank is bounded", []time.Duration{0, 0, 0, 41 * ms}, limit(20*ms, 20*ms), false},
		{"unlimited", []time.Duration{time.Hour}, limit(cpu.Unlimited, 0), true},
	} {
		if got := Covers(c.demand, c.b); got != c.want {
			t.Errorf("%s: Covers = %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzPool does anything that may be done to a pool, and holds it against what a quota promises.
func FuzzPool(f *testing.F) {
	f.Add([]byte{0, 10, 1, 20, 2, 3, 0, 200, 1, 5, 3, 0})
	f.Add([]byte{3, 255, 0, 255, 3, 1, 0, 255, 1, 0, 1, 0, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		p := pool(20*ms, 0)
		granted, used := 20*ms, time.Duration(0)
		for ; len(script) >= 2; script = script[2:] {
			n := time.Duration(script[1])
			before := p.Counts()
			switch script[0] % 4 {
			case 0:
				got := p.Take(n * ms)
				if got > n*ms {
					t.Fatalf("Take(%v) = %v", n*ms, got)
				}
				used += got
			case 1:
				if p.Active() {
					granted += p.Bandwidth().Quota
				}
				p.Expire(script[1]%2 == 0)
			case 2:
				p.Touch()
			case 3:
				b := limit((1+n)*ms, (1+n)*ms*time.Duration(script[0]/4)/64)
				p.Set(b)
				granted += b.Quota
			}
			checkPool(t, &p, before)
			if used > granted {
				t.Fatalf("used %v of %v granted", used, granted)
			}
		}
	})
}

func checkPool(t *testing.T, p *Pool, before Counts) {
	t.Helper()
	b, now := p.Bandwidth(), p.Counts()
	if p.Runtime() < 0 || p.Runtime() > b.Quota+b.Burst {
		t.Fatalf("runtime %v with %+v", p.Runtime(), b)
	}
	if now.Periods < before.Periods || now.Throttled < before.Throttled || now.Throttled > now.Periods ||
		now.Bursts < before.Bursts || now.BurstTime < before.BurstTime || (now.Bursts == 0) != (now.BurstTime == 0) {
		t.Fatalf("counts went from %+v to %+v", before, now)
	}
}

// FuzzCovers holds Covers against a pool that runs the same demands.
func FuzzCovers(f *testing.F) {
	f.Add(uint8(20), uint8(20), []byte{0, 35, 5, 35})
	f.Add(uint8(20), uint8(0), []byte{20, 20, 21})
	f.Fuzz(func(t *testing.T, quota, burst uint8, demands []byte) {
		b := limit(time.Duration(quota)*ms+ms, min(time.Duration(burst), time.Duration(quota)+1)*ms)
		p := New()
		p.Set(b) // grants the first quota: the bank is empty
		throttled := false
		var demand []time.Duration
		for _, d := range demands {
			use := time.Duration(d) * ms
			demand = append(demand, use)
			throttled = throttled || p.Take(use) < use
			p.Expire(false)
			if !p.Active() {
				p.Touch() // two idle periods have filled the bank; keep the count going
			}
		}
		if got := Covers(demand, b); got == throttled {
			t.Errorf("%+v, demand %v: Covers = %v, the pool throttled = %v", b, demand, got, throttled)
		}
	})
}
