package apply

import (
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
)

// refill is the rewrite of what stands in a group's burst file.
func (n *node) refill(group string) plan.Change {
	n.t.Helper()
	c := n.change(group, plan.Burst, n.held(group, plan.Burst))
	c.Refill = true
	return c
}

// TestRefill: an unchanged burst is written, which is what ends the throttle, and the journal holds what it held.
func TestRefill(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		for _, group := range []string{"/pod/a", "/pod/b"} { // without a burst, and with somebody's
			n.k.SetLoad(group, sim.Spin(1))
			for range 200 {
				if n.k.Runtime(group) <= 0 {
					break
				}
				n.k.Advance(time.Millisecond)
			}
			before := n.ours()
			if r := n.do(n.refill(group), plan.Applied); r.Taken != 1 {
				t.Errorf("%s: %d writes taken", group, r.Taken)
			}
			if left := n.k.Runtime(group); left != 50*ms || n.ours() != before+1 {
				t.Errorf("%s: %v of runtime after %d writes, want 50ms after one", group, left, n.ours()-before)
			}
			n.k.SetLoad(group, sim.Load{})
		}
		if e := n.j.Entries(); len(e) != 0 {
			t.Errorf("the journal holds %+v", e)
		}
		n.do(n.change("/pod/a", plan.Burst, "30ms"), plan.Applied)
		n.do(n.refill("/pod/a"), plan.Applied)
		n.wantOutcomes(n.w.Restore(nil, false), "/pod/a burst applied 0s")
	})
}

func TestRefillIsRefused(t *testing.T) {
	n := newNode(t, v2)
	stale := n.refill("/pod/a")
	n.foreign("/pod/a", plan.Burst, "10ms")
	before := n.ours()
	if r := n.do(stale, plan.Trampled); r.Taken != 0 {
		t.Error("a write was taken that was not made")
	}
	n.w.SetHold(true)
	n.do(n.refill("/pod/a"), plan.Skipped)
	n.w.SetHold(false)
	other := n.refill("/pod/a")
	other.To = "20ms"
	n.do(other, plan.Refused)
	gone := n.refill("/pod/a")
	n.k.RemoveGroup("/pod/a")
	n.do(gone, plan.Gone)
	if n.ours() != before {
		t.Errorf("%d writes", n.ours()-before)
	}
}
