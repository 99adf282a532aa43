package runq

import (
	"errors"
	"io"
	"testing"
	"time"
)

// TestAgain: a reading that is never whole ends with its time, and has one chance without any.
func TestAgain(t *testing.T) {
	for _, within := range []time.Duration{-time.Second, 0, 20 * time.Millisecond} {
		n, begun := 0, monotonic()
		err := again(begun+within, func() (bool, error) { n++; return false, nil })
		took := monotonic() - begun
		if !errors.Is(err, io.ErrNoProgress) || n == 0 || took < within || took > max(within, 0)+500*time.Millisecond {
			t.Errorf("within %v: %v after %d readings and %v", within, err, n, took)
		}
		if err := again(begun+within, func() (bool, error) { return true, nil }); err != nil {
			t.Errorf("within %v: %v", within, err)
		}
	}
}
