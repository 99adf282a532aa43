package agent

import (
	"testing"
	"time"
)

// TestWritesTellOthersByNumber: only more events than writes of ours prove another writer.
func TestWritesTellOthersByNumber(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name   string
		ours   int
		events []int
		after  time.Duration
		want   bool
	}{
		{"our own write", 1, []int{1}, 0, false},
		{"two of ours, merged", 2, []int{1}, 0, false},
		{"ours and another", 1, []int{2}, 0, true},
		{"another, later", 1, []int{1, 1}, 0, true},
		{"ours, read late", 1, []int{1}, 20 * time.Second, false},
		{"another long after two that were merged", 2, []int{1, 1}, 40 * time.Second, true},
		{"other events only", 0, []int{0}, 0, false},
	} {
		var w writes
		for range c.ours {
			w.did(now)
		}
		for i, n := range c.events {
			at := now
			if i == len(c.events)-1 {
				at = now.Add(c.after)
			}
			w.seen(at, n)
		}
		if w.foreign != c.want {
			t.Errorf("%s: foreign %v, want %v", c.name, w.foreign, c.want)
		}
	}
}
