package sysfs

import (
	"testing"
	"time"
)

func TestParseCPUTime(t *testing.T) {
	for _, tt := range []struct {
		text         string
		busy, stolen time.Duration
		ok           bool
	}{
		{"cpu  3457 1 2734 279587 540 7 57 15 100 1\ncpu0 1 1 1 1\n", (3457 + 1 + 2734 + 7 + 57 + 15) * tick, 15 * tick,
			true},
		{"cpu 1 2 3 4\n", 6 * tick, 0, true},
		{"cpu 1 2 3\n", 0, 0, false},
		{"cpu0 1 2 3 4\n", 0, 0, false},
		{"cpu 1 2 3 4", 0, 0, false},
		{"cpu 1 -2 3 4\n", 0, 0, false},
		{"cpu 1 x 3 4\n", 0, 0, false},
		{"cpu 922337203685477580 1 1 1 1\n", 0, 0, false},
		{"cpu 9223372036854775807 9223372036854775807 1 1 1\n", 0, 0, false},
		{"", 0, 0, false},
	} {
		busy, stolen, err := parseCPUTime([]byte(tt.text))
		if busy != tt.busy || stolen != tt.stolen || (err == nil) != tt.ok {
			t.Errorf("parseCPUTime(%q) = %v, %v, %v", tt.text, busy, stolen, err)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	for _, tt := range []struct {
		text        string
		ran, waited time.Duration
		ok          bool
	}{
		{"1234567 73620 1\n", 1234567, 73620, true},
		{"0 0 0\n", 0, 0, true},
		{"1234567 73620 1", 0, 0, false},
		{"1234567\n", 0, 0, false},
		{"-1 0 0\n", 0, 0, false},
		{"1 -2 3\n", 0, 0, false},
		{"1 x 3\n", 0, 0, false},
		{"18446744073709551615 0 0\n", 0, 0, false},
	} {
		ran, waited, err := ParseSchedstat([]byte(tt.text))
		if ran != tt.ran || waited != tt.waited || (err == nil) != tt.ok {
			t.Errorf("ParseSchedstat(%q) = %v, %v, %v", tt.text, ran, waited, err)
		}
	}
}

func TestParseStatm(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"732 438 400 5 0 100 0\n", 438, true},
		{"732\n", 0, false},
		{"732 438", 0, false},
		{"732 -1\n", 0, false},
	} {
		got, err := parseStatm([]byte(tt.text))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("parseStatm(%q) = %v, %v", tt.text, got, err)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte("cpu  3457 1 2734 279587 540 7 57 15 100 1\ncpu0 1 1 1 1\n"))
	f.Add([]byte("cpu 9223372036854775807 1 1 1 1\n"))
	f.Add([]byte("1234567 73620 1\n"))
	f.Add([]byte("732 438 400 5 0 100 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		busy, stolen, err := parseCPUTime(data)
		if stolen < 0 || busy < stolen || err != nil && busy != 0 {
			t.Errorf("parseCPUTime(%q) = %v, %v, %v", data, busy, stolen, err)
		}
		if ran, waited, err := ParseSchedstat(data); ran < 0 || waited < 0 || err != nil && ran+waited != 0 {
			t.Errorf("ParseSchedstat(%q) = %v, %v, %v", data, ran, waited, err)
		}
		if n, err := parseStatm(data); n < 0 || err != nil && n != 0 {
			t.Errorf("parseStatm(%q) = %v, %v", data, n, err)
		}
	})
}
