package apply

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
)

// raisedBurst is a node whose group /pod/a has a burst of ours.
func raisedBurst(t *testing.T) *node {
	n := newNode(t, v1)
	n.do(n.change("/pod/a", plan.Burst, "40ms"), plan.Applied)
	return n
}

// TestBurstComesBackAtOnce: a burst that comes back between a write and its reading is written again, and stays in the
// journal if it comes back each time.
func TestBurstComesBackAtOnce(t *testing.T) {
	for times, want := range map[int]plan.Outcome{1: plan.Applied, writesAtMost: plan.Refused} {
		for _, restore := range []bool{false, true} {
			n := raisedBurst(t)
			back, written := 0, false
			n.k.Fault = func(op, name string, _ []byte) error {
				switch ours := strings.HasSuffix(name, "cpu.cfs_burst_us"); {
				case ours && op == "write":
					written = true
				case ours && written && back < times: // it is read back
					back, written = back+1, false
					n.foreign("/pod/a", plan.Burst, "40ms")
				}
				return nil
			}
			c := n.change("/pod/a", plan.Burst, "20ms")
			if c.Restore = restore; restore {
				c.To = "0s"
			}
			if r := n.do(c, want); r.Taken != min(times+1, writesAtMost) {
				t.Errorf("%d times, restore %v: %d writes taken", times, restore, r.Taken)
			}
			_, claimed := n.j.Entry(c.Cgroup, plan.Burst)
			if claimed == (want == plan.Applied && restore) {
				t.Errorf("%d times, restore %v: claimed %v", times, restore, claimed)
			}
			n.k.Fault = nil
			n.w.Restore(nil, false)
			if got := n.held("/pod/a", plan.Burst); got != "0s" {
				t.Errorf("%d times, restore %v: restored to %s", times, restore, got)
			}
		}
	}
}

// TestBurstComesBackAfterAll: a restore of everything waits for owners' writes that are under way.
func TestBurstComesBackAfterAll(t *testing.T) {
	n := raisedBurst(t)
	var slept time.Duration
	n.w.Sleep = func(d time.Duration) {
		if slept += d; slept == d {
			n.foreign("/pod/a", plan.Burst, "40ms")
		}
	}
	n.w.Restore(nil, false)
	if got := n.held("/pod/a", plan.Burst); got != "0s" || slept != 2*lateness || len(n.j.Entries()) > 0 {
		t.Errorf("the burst is %s after %v, %d entries are left", got, slept, len(n.j.Entries()))
	}
}

// TestBurstComesBackInAGroupThatWasLeft: it is restored again, but not late, and not what was written since.
func TestBurstComesBackInAGroupThatWasLeft(t *testing.T) {
	all := func(journal.Entry) bool { return true }
	for _, c := range []struct {
		after   time.Duration
		claimed bool
		want    plan.Value
	}{{time.Second, false, "0s"}, {backWithin + time.Second, false, "40ms"}, {time.Second, true, "40ms"}} {
		n := raisedBurst(t)
		n.w.TryRestore(all)
		n.k.Advance(c.after)
		if c.claimed {
			n.do(n.change("/pod/a", plan.Burst, "40ms"), plan.Applied)
		} else {
			n.foreign("/pod/a", plan.Burst, "40ms")
		}
		n.w.RestoreAgain()
		if got := n.held("/pod/a", plan.Burst); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
