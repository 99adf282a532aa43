package scx

import (
	"slices"
	"testing"
)

// TestEveryThread: threads that raised ones make while all are lowered are raised, and lowered in the end.
func TestEveryThread(t *testing.T) {
	raised := map[int]bool{1: true, 2: true, 3: false}
	list := func() []int {
		var tids []int
		for tid := range raised {
			tids = append(tids, tid)
		}
		slices.Sort(tids)
		if raised[2] { // after it was listed what there is
			raised[4] = true
		}
		return tids
	}
	looks := 0
	everyThread(list, func(tid int) bool {
		looks++
		was := raised[tid]
		raised[tid] = false
		return was
	})
	for tid, left := range raised {
		if left {
			t.Errorf("thread %d stays raised", tid)
		}
	}
	if want := 3 + 4 + 4; looks != want {
		t.Errorf("%d reads of threads, want %d: the last pass finds nothing", looks, want)
	}
	passed := 0
	everyThread(func() []int { passed++; return []int{1} }, func(int) bool { return true })
	if passed != passes {
		t.Errorf("%d passes where there is no end, want %d", passed, passes)
	}
}
