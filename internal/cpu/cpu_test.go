package cpu

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

func TestOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		b      Bandwidth
		period time.Duration
		want   time.Duration
	}{
		{"the same period", Bandwidth{Quota: 50 * ms, Period: 100 * ms}, 100 * ms, 50 * ms},
		{"a shorter one", Bandwidth{Quota: 50 * ms, Period: 100 * ms}, 10 * ms, 5 * ms},
		{"rounded down to a microsecond", Bandwidth{Quota: ms, Period: 3 * ms}, 100 * ms, 33333 * time.Microsecond},
		{"an exact multiple", Bandwidth{Quota: 4007 * time.Microsecond, Period: ms}, 2 * ms, 8014 * time.Microsecond},
		{"more than an int64 can hold", Bandwidth{Quota: math.MaxInt64 / 2, Period: ms}, 100 * ms, Unlimited},
		{"no limit", Bandwidth{Quota: Unlimited, Period: 100 * ms}, 10 * ms, Unlimited},
		{"nothing declared", Bandwidth{}, 100 * ms, Unlimited},
	} {
		if got := c.b.Over(c.period); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		p    int64
		want time.Duration
	}{
		{50 * ms, 300, 150 * ms},
		{50 * ms, 0, 0},
		{12345 * time.Microsecond, 1000, 123450 * time.Microsecond},
		{7, 50, 3},
		{Unlimited, 300, Unlimited},
		{math.MaxInt64 / 50, 10000, Unlimited},
	} {
		if got := Percent(c.d, c.p); got != c.want {
			t.Errorf("Percent(%v, %d) = %v, want %v", c.d, c.p, got, c.want)
		}
	}
}

func TestCPUs(t *testing.T) {
	if got := (Bandwidth{Quota: 250 * ms, Period: 100 * ms}).CPUs(); got != 2.5 {
		t.Errorf("CPUs = %v, want 2.5", got)
	}
	if got := (Bandwidth{Quota: Unlimited, Period: 100 * ms}).CPUs(); !math.IsInf(got, 1) {
		t.Errorf("CPUs of no limit = %v, want +Inf", got)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		text, canonical string
		want            Set
	}{
		{"0-3,8\n", "0-3,8", Set{0, 1, 2, 3, 8}},
		{"", "", nil},
		{"\n", "", nil},
		{"8,0-1,1-2", "0-2,8", Set{0, 1, 2, 8}},
	} {
		got, err := ParseSet(c.text)
		if err != nil || !cmp.Equal(got, c.want) || got.String() != c.canonical {
			t.Errorf("ParseSet(%q) = %v (%q), %v", c.text, got, got.String(), err)
		}
	}
	for _, bad := range []string{"a", "1-", "3-1", "-1", "1,,2", "99999", "1 2", "0-8192"} {
		if got, err := ParseSet(bad); err == nil {
			t.Errorf("ParseSet(%q) = %v, want an error", bad, got)
		}
	}
}

func FuzzParseSet(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseSet(text)
		if err != nil {
			return
		}
		again, err := ParseSet(set.String())
		if err != nil || !cmp.Equal(set, again) {
			t.Errorf("%q became %v, and that %v, %v", text, set, again, err)
		}
	})
}
