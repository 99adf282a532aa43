package cgroup

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

const (
	ms = time.Millisecond
	us = time.Microsecond
)

func TestParseMax(t *testing.T) {
	for _, tt := range []struct {
		text string
		want cpu.Bandwidth
		ok   bool
	}{
		{"max 100000", cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}, true},
		{"50000 100000", cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}, true},
		{"1000 1000000", cpu.Bandwidth{Quota: ms, Period: time.Second}, true},
		{"17592186044415 100000", cpu.Bandwidth{Quota: 17592186044415 * us, Period: 100 * ms}, true},
		{"", cpu.Bandwidth{}, false},
		{"max", cpu.Bandwidth{}, false},
		{"max max", cpu.Bandwidth{}, false},
		{"50000", cpu.Bandwidth{}, false},
		{"-1 100000", cpu.Bandwidth{}, false},
		{"50000 0", cpu.Bandwidth{}, false},
		{"50000 100000 0", cpu.Bandwidth{}, false},
		{"9223372036854775807 100000", cpu.Bandwidth{}, false},
	} {
		got, err := parseMax(tt.text)
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("parseMax(%q) = %v, %v", tt.text, got, err)
		}
	}
}

func TestParseQuotaV1(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"-1", cpu.Unlimited, true},
		{"50000", 50 * ms, true},
		{"9223372036854775", math.MaxInt64 / 1000 * us, true},
		{"9223372036854776", 0, false},
		{"-2", 0, false},
		{"max", 0, false},
		{"", 0, false},
		{"50000\n", 0, false},
	} {
		got, err := parseQuotaV1(tt.text)
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("parseQuotaV1(%q) = %v, %v", tt.text, got, err)
		}
	}
}

func TestParseStat(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       cpu.Counters
		ok         bool
	}{
		{"v1, 6.18", "nr_periods 7\nnr_throttled 3\nthrottled_time 91000001\nnr_bursts 2\nburst_time 5000\n",
			cpu.Counters{Periods: 7, Throttled: 3, ThrottledTime: 91000001, Bursts: 2, BurstTime: 5000,
				HasBursts: true}, true},
		{"v1, 5.10", "nr_periods 7\nnr_throttled 3\nthrottled_time 91000001\n",
			cpu.Counters{Periods: 7, Throttled: 3, ThrottledTime: 91000001}, true},
		{"v2, 6.12", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 0\ncore_sched.force_idle_usec 0\n" +
			"nr_periods 7\nnr_throttled 3\nthrottled_usec 91000\nnr_bursts 2\nburst_usec 5\n",
			cpu.Counters{Usage: 1500 * us, HasUsage: true, Periods: 7, Throttled: 3, ThrottledTime: 91 * ms, Bursts: 2,
				BurstTime: 5 * us, HasBursts: true}, true},
		{"v2 without the controller", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n",
			cpu.Counters{Usage: 1500 * us, HasUsage: true}, true},
		{"a vendor's key", "nr_periods 7\ncurrent_bw 18446744073709551615\nwait per cpu\n", cpu.Counters{Periods: 7},
			true},
		{"empty", "", cpu.Counters{}, true},
		{"torn", "nr_periods 7\nnr_thro", cpu.Counters{}, false},
		{"no value", "nr_periods\n", cpu.Counters{}, false},
		{"after 2^31 periods", "nr_periods -2147483648\nnr_throttled -3\nnr_bursts -1\n",
			cpu.Counters{Periods: 1 << 31, Throttled: 1<<32 - 3, Bursts: 1<<32 - 1, HasBursts: true}, true},
		{"negative", "nr_periods -2147483649\n", cpu.Counters{}, false},
		{"negative time", "nr_periods 7\nthrottled_usec -3\n", cpu.Counters{}, false},
		{"not a number", "throttled_time x\n", cpu.Counters{}, false},
		{"near MaxInt64", "usage_usec 9223372036854775807\n", cpu.Counters{}, false},
		{"beyond int64", "throttled_time 18446744073709551615\n", cpu.Counters{}, false},
	} {
		got, err := parseStat([]byte(tt.text))
		if (err == nil) != tt.ok {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestParseKey(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
		ok   bool
	}{
		{"populated 1\nfrozen 0\n", true, true},
		{"populated 0\nfrozen 0\n", false, true},
		{"frozen 0\n", false, false},
		{"populated 2\n", false, false},
		{"populated 1", false, false},
		{"populated 1\nfrozen 0", false, false},
	} {
		got, err := parseKey([]byte(tt.text), "populated", parseFlag)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("parseKey(%q) = %v, %v", tt.text, got, err)
		}
	}
}

func TestParsePIDs(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []int
		ok   bool
	}{
		{"", nil, true},
		{"1\n4194304\n", []int{1, 4194304}, true},
		{"0\n", []int{0}, true},
		{"4194305\n", nil, false},
		{"12\n3", nil, false},
		{"-1\n", nil, false},
		{"\n", nil, false},
	} {
		got, err := parsePIDs([]byte(tt.text))
		if (err == nil) != tt.ok || !cmp.Equal(got, tt.want) {
			t.Errorf("parsePIDs(%q) = %v, %v", tt.text, got, err)
		}
	}
}

func TestLine(t *testing.T) {
	if got, err := line([]byte("100000\n")); got != "100000" || err != nil {
		t.Errorf("line = %q, %v", got, err)
	}
	for _, torn := range []string{"", "1000"} {
		if _, err := line([]byte(torn)); err == nil {
			t.Errorf("line(%q) accepts a torn read", torn)
		}
	}
}

func FuzzMax(f *testing.F) {
	for _, seed := range []string{"max 100000", "50000 100000", "-1 0", "max", "9223372036854775807 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := parseMax(text)
		if err != nil {
			if b != (cpu.Bandwidth{}) {
				t.Fatalf("an error and a value: %v, %v", b, err)
			}
			return
		}
		if b.Quota < 0 || b.Period <= 0 {
			t.Fatalf("%q gives %v", text, b)
		}
		again, err := parseMax(formatMax(b.Quota, b.Period))
		if err != nil || again != b {
			t.Fatalf("%v comes back as %v, %v", b, again, err)
		}
	})
}

func FuzzQuotaV1(f *testing.F) {
	for _, seed := range []string{"-1", "50000", "9223372036854775807", "+1", "0x10", "1_0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseQuotaV1(text)
		if err != nil {
			if d != 0 {
				t.Fatalf("an error and a value: %v, %v", d, err)
			}
			return
		}
		if d < 0 {
			t.Fatalf("%q gives %v", text, d)
		}
		again, err := parseQuotaV1(formatQuotaV1(d))
		if err != nil || again != d {
			t.Fatalf("%v comes back as %v, %v", d, again, err)
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("nr_periods 7\nnr_throttled 3\nthrottled_time 91000001\nnr_bursts 2\nburst_time 5000\n"))
	f.Add([]byte("usage_usec 9223372036854775807\nnr_periods 7\nthrottled_usec 91000\n"))
	f.Add([]byte("usage_usec 9223372036854775\nburst_usec 5\nx y z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseStat(data)
		if err != nil {
			if c != (cpu.Counters{}) {
				t.Fatalf("an error and a value: %v, %v", c, err)
			}
			return
		}
		for _, n := range []int64{int64(c.Usage), c.Periods, c.Throttled, int64(c.ThrottledTime), c.Bursts,
			int64(c.BurstTime)} {
			if n < 0 {
				t.Fatalf("%q gives a negative count: %+v", data, c)
			}
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add([]byte("populated 1\nfrozen 0\n"))
	f.Add([]byte("throttled_usec 9223372036854775807\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := parseKey(data, "throttled_usec", parseMicros); d < 0 || err != nil && d != 0 {
			t.Fatalf("%q: %v, %v", data, d, err)
		}
		if on, err := parseKey(data, "populated", parseFlag); err != nil && on {
			t.Fatalf("%q: an error and a value: %v", data, err)
		}
	})
}

func FuzzPIDs(f *testing.F) {
	f.Add([]byte("1\n4194304\n"))
	f.Add([]byte("1\n99999999999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pids, err := parsePIDs(data)
		if err != nil && pids != nil {
			t.Fatalf("an error and a value: %v, %v", pids, err)
		}
		for _, p := range pids {
			if p < 0 || p > maxPID {
				t.Fatalf("%q gives %d", data, p)
			}
		}
	})
}
