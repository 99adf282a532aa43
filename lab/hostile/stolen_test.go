package main

import "testing"

// TestStolen: what a hypervisor took is a part of all time, which counts guests once.
func TestStolen(t *testing.T) {
	before, err := parseCPUTime("cpu  100 10 50 800 20 5 5 10 70 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if err != nil || before != (cpuTime{all: 1000, stolen: 10}) {
		t.Fatalf("%+v, %v", before, err)
	}
	after, err := parseCPUTime("cpu  100 10 50 950 20 5 5 60 70 7\n")
	if part := after.since(before); err != nil || part != 0.25 {
		t.Errorf("%v of the time since, want a quarter, %v", part, err)
	}
	if part := before.since(before); part != 0 {
		t.Errorf("%v of no time", part)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4 5 6 7 x 9"} {
		if _, err := parseCPUTime(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}
