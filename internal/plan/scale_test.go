package plan

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

func TestScale(t *testing.T) {
	for _, c := range []struct {
		before, now time.Duration
		want        int64
	}{
		{ms, 2 * ms, 2},
		{ms, 512 * ms, 512},
		{5 * ms, 5 * ms, 1},
		{5 * ms, 15 * ms, 1},
		{10 * ms, 5 * ms, 1},
		{500 * ms, time.Second, 1}, // the kernel stays below a second
		{0, 10 * ms, 1},
	} {
		if got := Scale(c.before, c.now); got != c.want {
			t.Errorf("from %v to %v: %d, want %d", c.before, c.now, got, c.want)
		}
	}
	for v, want := range map[Value]Value{"1ms": "4ms", "4.007ms": "16.028ms", "0s": "0s", Time(cpu.Unlimited): "max",
		"": ""} {
		if got := v.Times(4); got != want || got.Divided(4) != v {
			t.Errorf("%q times 4: %q, and back %q", v, got, got.Divided(4))
		}
	}
}
