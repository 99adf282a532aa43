package loader

import (
	"errors"
	"testing"
	"testing/synctest"

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
