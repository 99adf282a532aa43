package main

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

// TestPerform: a job uses the CPU time that its grains are, and no more, and their times are in order.
func TestPerform(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	done := make([]time.Duration, 4)
	begin, origin := clock(unix.CLOCK_THREAD_CPUTIME_ID), clock(unix.CLOCK_MONOTONIC)
	perform(done, origin)
	used, took := clock(unix.CLOCK_THREAD_CPUTIME_ID)-begin, clock(unix.CLOCK_MONOTONIC)-origin
	if want := grain * time.Duration(len(done)); used < want || used > want+grain {
		t.Errorf("%v of work used %v of CPU time", want, used)
	}
	if !slices.IsSorted(done) || done[0] < grain || done[3] > took {
		t.Errorf("grains were done at %v, of %v", done, took)
	}
}

// TestAwaitPhase: it lasts until another period of the clock has begun, and a run begins there.
func TestAwaitPhase(t *testing.T) {
	const period = 100 * time.Millisecond
	for range 3 {
		begin := clock(unix.CLOCK_MONOTONIC)
		awaitPhase(period)
		if end := clock(unix.CLOCK_MONOTONIC); end/period == begin/period {
			t.Errorf("from %v to %v", begin, end)
		}
	}
}

// TestGuestSettings: a virtual machine has a load and a limit of its own, unless told otherwise,
// and CPUs for the agent.
func TestGuestSettings(t *testing.T) {
	for args, want := range map[string][]string{
		"":                                nil,
		"-vm 6.18":                        {"taskset 6 ", "-limit 0.3 -threads 1 "},
		"-vm 6.18 -only batch":            {"-only \"batch\" "},
		"-vm 6.18 -threads 2 -limit 0.25": {"taskset c ", "-limit 0.25 -threads 2 "},
	} {
		s := &settings{length: time.Minute}
		if err := frame.Parse("replay", s, strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		vm, script := s.Guest()
		if (vm == nil) != (want == nil) {
			t.Errorf("%q: machine %+v", args, vm)
		}
		for _, part := range want {
			if !strings.Contains(script, part) {
				t.Errorf("%q: no %q in %s", args, part, script)
			}
		}
	}
}

// TestBeside: what came is within the bounds, or outside.
func TestBeside(t *testing.T) {
	foretold := report.Between{Likely: 2 * time.Millisecond, Low: time.Millisecond, High: 3 * time.Millisecond}
	for real, want := range map[time.Duration]string{0: "0.0 ms, outside", time.Millisecond: "1.0 ms, within",
		3 * time.Millisecond: "3.0 ms, within",
		4 * time.Millisecond: "4.0 ms, outside"} {
		if got := beside(foretold, real); got != want {
			t.Errorf("%v: %s", real, got)
		}
	}
}
