package main

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
