package loader

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext"
)

// TestCancelDoesNotWait: a load under way is cancelled at once, and until the kernel has ended it there is no other.
func TestCancelDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan opening, 1)
		s := &Schedulers{opened: opened}
		s.Cancel()
		for range 2 {
			if _, err := s.Open(schedext.Options{}); !errors.Is(err, schedext.ErrNotYet) {
				t.Errorf("beside a load that was cancelled: %v", err)
			}
			s.Cancel() // of what has not begun
		}
		opened <- opening{err: errors.New("refused")}
		synctest.Wait()
		if err := <-s.cancelled; err != nil {
			t.Errorf("nothing was loaded: %v", err)
		}
	})
}

// TestLongestThrottles: the open class is in no length, and the others are.
func TestLongestThrottles(t *testing.T) {
	totals := probe.Totals{Ends: 3}
	totals.Lengths[probe.Buckets-2], totals.Lengths[probe.Buckets-1] = 1, 2
	want := []report.Length{{UpTo: 8388608 * time.Microsecond, N: 1}}
	if got := Throttles(totals); got.Ended != 3 || !slices.Equal(got.Lengths, want) {
		t.Errorf("%+v", got)
	}
}
