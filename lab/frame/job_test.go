package frame

import (
	"testing"
	"time"
)

// TestSchedule expects the same jobs from the same seed, others in each group, and none that drifts.
func TestSchedule(t *testing.T) {
	const every = 4 * time.Second
	a, again, other, reseeded := schedule(1, 2, every), schedule(1, 2, every), schedule(1, 3, every), schedule(2, 2,
		every)
	same, sameSeed, early, late := 0, 0, every, time.Duration(0)
	for i := range 1000 {
		due := a()
		if due != again() {
			t.Fatalf("job %d: the same seed gives another time", i)
		}
		early, late = min(early, due-time.Duration(i)*every), max(late, due-time.Duration(i)*every)
		if due == other() {
			same++
		}
		if due == reseeded() {
			sameSeed++
		}
	}
	if same > 10 || sameSeed > 10 {
		t.Errorf("%d jobs of another group and %d of another seed are due at the same time", same, sameSeed)
	}
	if early < 0 || early >= every || late-early >= every/jitter {
		t.Errorf("jobs are due from %v to %v after their turn", early, late)
	}
}

// TestJobExceedsWhatIsSaved: else nothing would be throttled.
func TestJobExceedsWhatIsSaved(t *testing.T) {
	if saved := 2 * LeastQuota; Burn(LeastQuota) <= saved {
		t.Errorf("a job of %v fits into %v", Burn(LeastQuota), saved)
	}
}
