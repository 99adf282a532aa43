package experiment

import (
	"testing"
	"time"
)

func TestCorrected(t *testing.T) {
	const want = 40 * time.Millisecond
	for _, c := range []struct {
		cost time.Duration
		size int
	}{
		{want, 1000},
		{50 * time.Millisecond, 800},
		{32 * time.Millisecond, 1250},
		{4 * time.Second, 500}, // something else was counted, too
		{time.Millisecond, 2000},
	} {
		if got := corrected(1000, want, c.cost); got != c.size {
			t.Errorf("a request of 1000 costs %v: the next size is %d, want %d", c.cost, got, c.size)
		}
	}
	if got := corrected(1, want, time.Hour); got != 1 {
		t.Errorf("size %d, want at least 1", got)
	}
}
