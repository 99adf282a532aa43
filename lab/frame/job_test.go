package frame

import (
	"testing"
	"time"
)

// TestSchedule expects the same jobs from the same seed, others in each group, and none that drifts.
func TestSchedule(t *testing.T) {
	const every = 4 * time.Second
	a, again, other, reseeded := newSchedule(1, 2, every), newSchedule(1, 2, every), newSchedule(1, 3, every), newSchedule(2, 2, every)
	same, sameSeed := 0, 0
	for i := range 1000 {
		due := a.next()
		if due != again.next() {
			t.Fatalf("job %d: the same seed gives another time", i)
		}
		if late := due - a.phase - time.Duration(i)*every; late < 0 || late >= every/jitter {
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
	if saved := 2 * LeastQuota; Burn(LeastQuota) <= saved {
		t.Errorf("a job of %v fits into %v", Burn(LeastQuota), saved)
	}
}
