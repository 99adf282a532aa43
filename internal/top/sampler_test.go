package top

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/view"
)

// TestSampler: a period is whole, wherever it is read; two that end between two readings share what was used.
func TestSampler(t *testing.T) {
	var s Sampler
	limit := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	var all view.Periods
	for i, c := range []cpu.Counters{
		{Periods: 5, Throttled: 2, Usage: time.Second, ThrottledTime: time.Hour},
		{Periods: 5, Throttled: 2, Usage: time.Second + 20*ms, ThrottledTime: time.Hour},
		{Periods: 6, Throttled: 3, Usage: time.Second + 50*ms, ThrottledTime: time.Hour + 40*ms},
		{Periods: 8, Throttled: 3, Usage: time.Second + 70*ms, ThrottledTime: time.Hour + 40*ms},
	} {
		all = Append(all, s.Add(t0.Add(time.Duration(i)*50*ms), c, limit), 10)
	}
	at := t0.UnixMilli()
	want := view.Periods{Length: 100 * ms, End: []int64{at + 100, at + 50, at + 150},
		Used: []int32{50_000, 10_000, 10_000}, Quota: []int32{50_000, 50_000, 50_000},
		Tokens: []int32{-1, -1, -1}, Throttles: []int32{1, 0, 0}, Lost: []int32{40_000, 0, 0}, Refills: []int32{0, 0,
			0}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

// TestSamplerBeginsAnewAfterAPause: what was used while nobody read is not spread over the periods of that time.
func TestSamplerBeginsAnewAfterAPause(t *testing.T) {
	var s Sampler
	limit := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	s.Add(t0, cpu.Counters{}, limit)
	if p := s.Add(t0.Add(time.Minute), cpu.Counters{Periods: 600, Usage: time.Second}, limit); len(p.End) != 1 ||
		p.Used[0] != -1 {
		t.Errorf("of a pause: %+v", p)
	}
	after := cpu.Counters{Periods: 601, Usage: time.Second + 20*ms}
	if p := s.Add(t0.Add(time.Minute+50*ms), after, limit); len(p.End) != 1 || p.Used[0] != 20_000 {
		t.Errorf("after it: %+v", p)
	}
}

// TestSamplerWithoutLimit: without a limit the clock stands for the periods.
func TestSamplerWithoutLimit(t *testing.T) {
	var s Sampler
	free := cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}
	s.Add(t0, cpu.Counters{}, free)
	if p := s.Add(t0.Add(50*ms), cpu.Counters{Usage: 30 * ms}, free); len(p.End) != 0 {
		t.Errorf("half a period: %+v", p)
	}
	if p := s.Add(t0.Add(100*ms), cpu.Counters{Usage: 70 * ms}, free); len(p.End) != 1 || p.Used[0] != 70_000 ||
		p.Quota[0] != -1 {
		t.Errorf("a period: %+v", p)
	}
}
