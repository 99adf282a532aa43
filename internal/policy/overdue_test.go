package policy

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

// TestOverdueLowering: a lowering that may not be written now waits for patience, and a period longer where the period
// is known. Then it is written, without a burst that a period with two writes would grant, and charged to the budget.
func TestOverdueLowering(t *testing.T) {
	const capacity = 10 * time.Second
	for _, c := range []struct {
		name   string
		known  bool
		waited time.Duration
		writes bool
	}{
		{"at first", false, 0, false},
		{"until patience ends", false, patience - ms, false},
		{"after that", false, patience, true},
		{"where the period is known", true, patience, false},
		{"and one period later", true, patience + 100*ms, true},
	} {
		b := cpu.Bandwidth{Quota: 150 * ms, Period: 100 * ms}
		u := &candidate{Group: Group{Disk: b}, limit: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}, buffer: 40 * ms,
			decision: decision{quota: 50 * ms},
			m:        &memory{overdue: t0, budget: budget{bounded: true, capacity: capacity, tokens: capacity}}}
		if c.waited == 0 {
			u.m.overdue = time.Time{}
		}
		u.wait(Input{Now: t0.Add(c.waited), Rules: Rules{Burst: true}}, c.known)
		want, left := b.Quota, capacity
		if c.writes {
			want, left = 50*ms, capacity-50*ms
		}
		if u.quota != want || u.m.budget.left() != left || strings.HasSuffix(u.why, Overdue) != c.writes {
			t.Errorf("%s: quota %v, %v left, %q; want %v and %v", c.name, u.quota, u.m.budget.left(), u.why, want, left)
		}
		if u.buffer > 0 {
			t.Errorf("%s: a burst of %v is written too", c.name, u.buffer)
		}
		if u.m.overdue.IsZero() {
			t.Errorf("%s: forgot since when it waits", c.name)
		}
	}
}
