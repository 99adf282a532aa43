package apply

import (
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
)

// TestQuotaClaimIsNotLeftBehind: what is claimed because a write might change it, is let go with it.
func TestQuotaClaimIsNotLeftBehind(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/b", plan.Quota, "80ms"), plan.Applied)
	if len(n.j.Entries()) != 2 {
		t.Errorf("entries %+v", n.j.Entries())
	}
	back := n.change("/pod/b", plan.Quota, "50ms")
	back.Restore = true
	n.do(back, plan.Applied)
	if left := n.j.Entries(); len(left) > 0 {
		t.Errorf("left in the journal: %+v", left)
	}
}

// TestBurstOfOursStaysClaimed while the quota comes and goes.
func TestBurstOfOursStaysClaimed(t *testing.T) {
	n := newNode(t, v2)
	before := n.files()
	n.do(n.change("/pod/b", plan.Burst, "40ms"), plan.Applied)
	n.do(n.change("/pod/b", plan.Quota, "80ms"), plan.Applied)
	back := n.change("/pod/b", plan.Quota, "50ms")
	back.Restore = true
	n.do(back, plan.Applied)
	e, ok := n.j.Entry(n.id("/pod/b"), plan.Burst)
	if !ok || e.Original != "20ms" || e.Min != "1ms" || e.Max != "300ms" {
		t.Errorf("%+v", e)
	}
	n.w.Restore(nil, false)
	n.wantFiles("restored", before)
}

// TestBurstIsUnreadable: a burst that is in force stays claimed, whichever reading of it fails as the quota returns.
func TestBurstIsUnreadable(t *testing.T) {
	reads := 0
	for fails := 1; fails == 1 || reads >= fails-1; fails++ {
		n := newNode(t, v2)
		before := n.files()
		n.do(n.change("/pod/b", plan.Burst, "40ms"), plan.Applied)
		n.do(n.change("/pod/b", plan.Quota, "80ms"), plan.Applied)
		back := n.change("/pod/b", plan.Quota, "50ms")
		back.Restore, reads = true, 0
		n.k.Fault = func(op, name string, _ []byte) error {
			if op == "read" && path.Base(name) == "cpu.max.burst" {
				if reads++; reads == fails {
					return syscall.ENFILE
				}
			}
			return nil
		}
		n.w.Do([]plan.Change{back})
		n.k.Fault = nil
		n.w.Restore(nil, false)
		n.wantFiles(fmt.Sprintf("reading %d failed", fails), before)
	}
}

// TestMendFails: the quota was taken, the burst was divided, and could not be put right.
func TestMendFails(t *testing.T) {
	n := newNode(t, divides)
	before := n.files()
	writes := 0
	n.k.Fault = func(op, _ string, _ []byte) error {
		if op != "write" {
			return nil
		}
		if writes++; writes == 2 {
			return syscall.EIO
		}
		return nil
	}
	r := n.do(n.change("/pod/b", plan.Quota, "80ms"), plan.Applied)
	if r.InForce != "80ms" || !strings.Contains(r.Err, "input/output error") ||
		n.held("/pod/b", plan.Burst) != "20\u00b5s" {
		t.Errorf("%+v, burst %s", r, n.held("/pod/b", plan.Burst))
	}
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/b burst applied 20ms", "/pod/b quota applied 50ms")
	n.wantFiles("restored", before)
	n.wantIdempotent()
}

// TestNothingIsReadAfterTheQuota: the quota was taken, and neither the burst nor the quota could be read after it.
func TestNothingIsReadAfterTheQuota(t *testing.T) {
	n := newNode(t, divides)
	before := n.files()
	written := false
	n.k.Fault = func(op, _ string, _ []byte) error {
		if op == "read" && written {
			return syscall.ENFILE
		}
		written = written || op == "write"
		return nil
	}
	if r := n.do(n.change("/pod/b", plan.Quota, "80ms"), plan.Applied); r.InForce != "" || r.Err == "" || r.Taken != 1 {
		t.Errorf("%+v", r)
	}
	n.k.Fault = nil
	if held := n.held("/pod/b", plan.Quota); held != "80ms" {
		t.Errorf("quota %s: the scenario proves nothing", held)
	}
	n.w.Restore(nil, false)
	n.wantFiles("restored", before)
	n.wantIdempotent()
}

// TestNothingCanBeOpened: a restore that could not be written is refused where the file cannot be read after it either.
func TestNothingCanBeOpened(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		n.do(n.change("/pod/a", plan.Burst, "20ms"), plan.Applied)
		back := n.change("/pod/a", plan.Burst, "0s")
		back.Restore = true
		full := false
		n.k.Fault = func(op, _ string, _ []byte) error {
			if full = full || op == "write"; full {
				return syscall.ENFILE
			}
			return nil
		}
		n.do(back, plan.Refused)
		n.k.Fault = nil
		n.do(back, plan.Applied)
	})
}

func TestDivided(t *testing.T) {
	entry := journal.Entry{Knob: plan.Burst, Original: "20ms", Prev: "40ms", Last: "50.5ms"}
	quota := entry
	quota.Knob = plan.Quota
	small := journal.Entry{Knob: plan.Burst, Original: "900us", Prev: "0s", Last: "0s"}
	for _, c := range []struct {
		e    journal.Entry
		held plan.Value
		want bool
	}{
		{entry, "20\u00b5s", true}, {entry, "40\u00b5s", true}, {entry, "50\u00b5s", true},
		{entry, "20ms", false}, {entry, "21\u00b5s", false}, {quota, "20\u00b5s", false}, {small, "0s", false},
	} {
		if got := newNode(t, v2).w.divided(c.e, c.held); got != c.want {
			t.Errorf("%s %s: %v", c.e.Knob, c.held, got)
		}
		if newNode(t, v1).w.divided(c.e, c.held) {
			t.Errorf("%s %s on v1", c.e.Knob, c.held)
		}
	}
}

// TestIdleKeepsTheWeight: setting and clearing cpu.idle loses the weight in the kernel, and not here.
func TestIdleKeepsTheWeight(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		n.must(n.tree.SetWeight("/free", 300))
		before := n.files()
		n.do(n.change("/free", plan.Idle, "1"), plan.Applied)
		if r := n.do(n.change("/free", plan.Weight, "400"), plan.Refused); !strings.Contains(r.Err, "cpu.idle") {
			t.Errorf("error %q", r.Err)
		}
		n.do(n.change("/free", plan.Idle, "0"), plan.Applied)
		if n.held("/free", plan.Weight) != "300" {
			t.Errorf("weight %s", n.held("/free", plan.Weight))
		}
		n.w.Restore(nil, false)
		n.wantFiles("set and cleared", before)
		n.do(n.change("/free", plan.Idle, "1"), plan.Applied)
		n.start()
		n.w.Restore(nil, false)
		n.wantFiles("set and restored", before)
		n.wantIdempotent()
	})
}

// TestDefaultWeightIsNotWritten, for clearing cpu.idle has set it already.
func TestDefaultWeightIsNotWritten(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		before := n.ours()
		n.do(n.change("/free", plan.Idle, "1"), plan.Applied)
		n.w.Restore(nil, false)
		if n.ours() != before+2 {
			t.Errorf("%d writes", n.ours()-before)
		}
		n.wantIdempotent()
	})
}

// TestWeightWaitsForIdle: while idle cannot be cleared the weight is locked, and not forgotten.
func TestWeightWaitsForIdle(t *testing.T) {
	n, _ := world(t, v1)
	before := n.files()
	n.do(n.change("/free", plan.Idle, "1"), plan.Applied)
	n.k.Fault = func(op, _ string, _ []byte) error {
		if op == "write" {
			return syscall.EIO
		}
		return nil
	}
	n.wantOutcomes(n.w.Restore(nil, false), "/free idle refused 1", "/free weight refused ")
	n.k.Fault = nil
	n.w.Restore(nil, false)
	n.wantFiles("restored", before)
	n.wantIdempotent()
}

// TestWeightThatCannotBeReadIsNotLost: without it, idle is not set.
func TestWeightThatCannotBeReadIsNotLost(t *testing.T) {
	n := newNode(t, v1)
	c := n.change("/free", plan.Idle, "1")
	n.k.Fault = func(_, name string, _ []byte) error {
		if strings.HasSuffix(name, "cpu.shares") {
			return syscall.EIO
		}
		return nil
	}
	n.do(c, plan.Refused)
	if n.held("/free", plan.Idle) != "0" {
		t.Error("it was set")
	}
}
