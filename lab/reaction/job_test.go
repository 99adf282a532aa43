package main

import (
	"testing"
	"time"
)

// TestSchedule wants the same jobs from the same seed, others in each group, and none that drifts.
func TestSchedule(t *testing.T) {
	a, again, other, reseeded := newSchedule(1, 2), newSchedule(1, 2), newSchedule(1, 3), newSchedule(2, 2)
	same, sameSeed := 0, 0
	for i := range 1000 {
		due := a.next()
		if due != again.next() {
			t.Fatalf("job %d: the same seed gives another time", i)
		}
		if late := due - a.phase - time.Duration(i)*every; late < 0 || late >= jitter {
			t.Errorf("job %d is due %v after its turn", i, late)
		}
		if due == other.next() {
			same++
		}
		if due == reseeded.next() {
			sameSeed++
		}
	}
	if same > 10 || sameSeed > 10 {
		t.Errorf("%d jobs of another group and %d of another seed are due at the same time", same, sameSeed)
	}
	if a.phase < 0 || a.phase >= every {
		t.Errorf("phase %v", a.phase)
	}
}

// TestJobExceedsWhatIsSaved: else nothing would be throttled.
func TestJobExceedsWhatIsSaved(t *testing.T) {
	if saved := 2 * quota; burn <= saved {
		t.Errorf("a job of %v fits into %v", burn, saved)
	}
	if mean := burn.Seconds() / every.Seconds(); mean >= 0.05 {
		t.Errorf("the jobs want %.3f CPUs, more than the limit of 0.05", mean)
	}
}
