package sample

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

const ms = time.Millisecond

var t0 = time.Unix(1000, 0)

func TestBetweenNeverRunsBackwards(t *testing.T) {
	a := Reading{At: t0, Counters: cpu.Counters{Usage: 50 * ms, Periods: 7, Throttled: 2}}
	b := Reading{At: t0.Add(100 * ms), Counters: cpu.Counters{Usage: 80 * ms, Periods: 8, Throttled: 1}}
	u := Between(a, b)
	if u.Used != 30*ms || u.Periods != 1 || u.Throttled != 0 || u.Elapsed() != 100*ms {
		t.Errorf("Between = %+v", u)
	}
}

func TestDemand(t *testing.T) {
	for _, c := range []struct {
		name    string
		elapsed time.Duration
		used    time.Duration
		stood   time.Duration
		want    time.Duration
	}{
		{"one period", 100 * ms, 50 * ms, 30 * ms, 80 * ms},
		{"shorter than a period", 90 * ms, 50 * ms, 0, 50 * ms},
		{"two periods", 200 * ms, 60 * ms, 40 * ms, 50 * ms},
	} {
		u := Usage{From: t0, To: t0.Add(c.elapsed), Used: c.used, ThrottledTime: c.stood}
		if got := u.Demand(100 * ms); got != c.want {
			t.Errorf("%s: Demand = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestHistory(t *testing.T) {
	var h History
	for i := range 20 {
		from := t0.Add(time.Duration(i) * 100 * ms)
		h.Add(Usage{From: from, To: from.Add(100 * ms), Used: time.Duration(i) * ms}, time.Second)
	}
	if got := len(h.windows); got != 11 {
		t.Errorf("kept %d windows of the last second, want 11", got)
	}
	now := t0.Add(2 * time.Second)
	if used, ok := h.UsedWithin(now, 150*ms); !ok || used != 18*ms+19*ms {
		t.Errorf("UsedWithin(150ms) = %v, %v, want 37ms: windows count whole", used, ok)
	}
	if _, ok := h.UsedWithin(now, 5*time.Second); ok {
		t.Error("UsedWithin claims to know more than it kept")
	}
	if _, ok := h.UsedWithin(now.Add(ms), 150*ms); ok {
		t.Error("UsedWithin claims to know what was used since the last look")
	}
	if got := h.Peak(100*ms, 300*ms); got != 19*ms {
		t.Errorf("Peak = %v, want 19ms", got)
	}
	if got, want := h.Mean(200*ms), 0.185; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("Mean = %v, want %v", got, want)
	}
	if got := len(h.Demands(100*ms, 300*ms)); got != 3 {
		t.Errorf("%d demands in 300 ms, want 3", got)
	}
}

// TestDemandOfShortWindows: windows that are shorter than a period are joined, those that are not are left alone. No
// demand is less than that of a single window.
func TestDemandOfShortWindows(t *testing.T) {
	for _, c := range []struct {
		period, window time.Duration
		used           []time.Duration // in each window
		peak           time.Duration
		demands        int
	}{
		{100 * ms, 90 * ms, []time.Duration{90 * ms, 90 * ms, 90 * ms, 0}, 90 * ms, 4},
		{50 * ms, 90 * ms, []time.Duration{90 * ms, 0}, 50 * ms, 2},
		{100 * ms, 45 * ms, []time.Duration{0, 45 * ms, 45 * ms, 0}, 90 * ms, 2},
		{time.Second, 90 * ms, slices.Repeat([]time.Duration{90 * ms}, 33), 990 * ms, 3},
		{250 * ms, 90 * ms, slices.Repeat([]time.Duration{90 * ms}, 6), 250 * ms, 2},
		{250 * ms, 90 * ms, []time.Duration{360 * ms, 0, 0}, 360 * ms, 1},
	} {
		var h History
		for i, used := range c.used {
			from := t0.Add(time.Duration(i) * c.window)
			h.Add(Usage{From: from, To: from.Add(c.window), Used: used}, 3*time.Second)
		}
		demands := h.Demands(c.period, 3*time.Second)
		if got := h.Peak(c.period, 3*time.Second); got != c.peak || len(demands) != c.demands {
			t.Errorf("period %v: up to %v, %v; want %v, %d", c.period, got, demands, c.peak, c.demands)
		}
	}
}

// TestPhaseFindsTheExpiry looks at a timer of a known phase at irregular times and wants the arc to hold it, always,
// and to become narrow.
func TestPhaseFindsTheExpiry(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		period := []time.Duration{10 * ms, 100 * ms, 250 * ms, time.Second}[rng.IntN(4)]
		truth := time.Duration(rng.Int64N(int64(period)))
		count := func(at time.Time) int64 { return int64((at.Sub(t0) - truth + 100*period) / period) }
		var p Phase
		at := t0
		for range 200 {
			next := at.Add(85*ms + time.Duration(rng.Int64N(int64(10*ms))))
			p.Observe(Usage{From: at, To: next, Periods: count(next) - count(at)}, period)
			at = next
			width, ok := p.Known()
			if !ok {
				continue
			}
			expiry := t0.Add(truth + at.Sub(t0)/period*period)
			if d := p.Distance(expiry); d > width/2+time.Microsecond {
				t.Fatalf("seed %d: expiry is %v away from the arc's middle, arc is %v wide", seed, d, width)
			}
		}
		if width, ok := p.Known(); !ok || width > period/8 {
			t.Errorf("seed %d: arc is %v of %v after 200 looks", seed, width, period)
		}
	}
}

func TestPhaseStartsAfreshOnContradiction(t *testing.T) {
	var p Phase
	p.Observe(Usage{From: t0, To: t0.Add(20 * ms), Periods: 1}, 100*ms)
	if w, ok := p.Known(); !ok || w != 20*ms {
		t.Fatalf("Known = %v, %v", w, ok)
	}
	p.Observe(Usage{From: t0.Add(40 * ms), To: t0.Add(60 * ms), Periods: 1}, 100*ms)
	if _, ok := p.Known(); ok {
		t.Error("a contradiction must be forgotten")
	}
}

func TestPhaseNext(t *testing.T) {
	var p Phase
	p.Observe(Usage{From: t0, To: t0.Add(20 * ms), Periods: 1}, 100*ms)
	if got, want := p.Next(t0.Add(20*ms)), t0.Add(110*ms); !got.Equal(want) {
		t.Errorf("Next = %v, want %v", got.Sub(t0), want.Sub(t0))
	}
}
