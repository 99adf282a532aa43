package apply

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
)

// scaledNode is a node whose container has a short period, and values of ours that the kernel has scaled.
func scaledNode(t *testing.T, n *node) {
	t.Helper()
	file, text := "cpu/pod/a/cpu.cfs_period_us", "5000"
	if n.tree.Version() == 2 {
		file, text = "pod/a/cpu.max", "2000 5000"
	}
	n.foreign("/pod/a", plan.Quota, "2ms")
	n.must(n.k.ForeignWrite(file, text))
	n.do(n.change("/pod/a", plan.Quota, "4ms"), plan.Applied)
	n.do(n.change("/pod/a", plan.Burst, "1ms"), plan.Applied)
	n.k.Scale("/pod/a")
	n.k.Scale("/pod/a")
	if b := n.k.Bandwidth("/pod/a"); b.Quota != 16*ms || b.Period != 20*ms || b.Burst != 4*ms {
		t.Fatalf("%+v", b)
	}
}

func (n *node) wantRestored() {
	n.t.Helper()
	n.w.Restore(nil, false)
	if b := n.k.Bandwidth("/pod/a"); b.Quota != 8*ms || b.Period != 20*ms || b.Burst != 0 {
		n.t.Errorf("restored %+v", b)
	}
	n.wantIdempotent()
}

// TestRestoreScaled: a restore keeps the owner's share of a CPU, after a crash and in a running agent that writes on.
func TestRestoreScaled(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		scaledNode(t, n)
		n.wantRestored()
	})
	each(t, func(t *testing.T, n *node) {
		scaledNode(t, n)
		n.do(n.change("/pod/a", plan.Quota, "12ms"), plan.Applied)
		if e, _ := n.j.Entry(n.id("/pod/a"), plan.Quota); e.Original != "8ms" || e.Period != "20ms" {
			t.Errorf("%+v", e)
		}
		n.k.Scale("/pod/a")
		n.must(n.w.Rebase(n.id("/pod/a"), plan.Quota, "16ms"))
		n.w.Restore(nil, false)
		if b := n.k.Bandwidth("/pod/a"); b.Quota != 16*ms || b.Period != 40*ms {
			t.Errorf("restored %+v", b)
		}
	})
}

// TestScaledMeanwhile: a change that was decided before is not made, and the value stays ours.
func TestScaledMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		scaledNode(t, n)
		stale := n.change("/pod/a", plan.Quota, "12ms")
		n.k.Scale("/pod/a")
		n.do(stale, plan.Trampled)
		if held, ours := n.w.InFile(n.entry("/pod/a")); held != "32ms" || !ours {
			t.Errorf("%s, ours %v", held, ours)
		}
		n.w.Restore(nil, false)
		if b := n.k.Bandwidth("/pod/a"); b.Quota != 16*ms {
			t.Errorf("restored %+v", b)
		}
	})
}

// TestScaledAsItIsWritten: before the value is read back.
func TestScaledAsItIsWritten(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		scaledNode(t, n)
		change, wrote := n.change("/pod/a", plan.Quota, "12ms"), false
		n.k.Fault = func(op, name string, data []byte) error {
			if op == "read" && wrote {
				n.k.Fault = nil
				n.k.Scale("/pod/a")
			}
			wrote = wrote || op == "write"
			return nil
		}
		if r := n.do(change, plan.Trampled); r.InForce != "24ms" {
			t.Errorf("%+v", r)
		}
		n.w.Restore(nil, false)
		if b := n.k.Bandwidth("/pod/a"); b.Quota != 16*ms || b.Period != 40*ms {
			t.Errorf("restored %+v", b)
		}
	})
}

// TestRestoreScaledMeanwhile: the kernel scales our values after they were examined, or a restored one before it is
// read back; the owner's share of a CPU is restored all the same, and nothing of ours is left.
func TestRestoreScaledMeanwhile(t *testing.T) {
	burst := func(op, _ string) bool { return op == "write" }
	quota := func(op, name string) bool {
		return op == "write" && (strings.HasSuffix(name, "a/cpu.max") || strings.HasSuffix(name, "a/cpu.cfs_quota_us"))
	}
	for name, c := range map[string]struct {
		after    func(op, name string) bool
		declared plan.Value
		want     time.Duration
	}{"examined": {burst, "", 16 * ms}, "examined, declared": {burst, "10ms", 20 * ms},
		"written": {quota, "", 16 * ms}} {
		each(t, func(t *testing.T, n *node) {
			scaledNode(t, n)
			if c.declared != "" {
				n.must(n.w.Rebase(n.id("/pod/a"), plan.Quota, c.declared))
			}
			armed := false
			n.k.Fault = func(op, file string, _ []byte) error {
				if armed && op == "read" {
					n.k.Fault = nil
					n.k.Scale("/pod/a")
				}
				armed = armed || c.after(op, file)
				return nil
			}
			for _, r := range n.w.Restore(nil, false) {
				if r.Outcome != plan.Applied {
					t.Errorf("%s: %+v", name, r)
				}
			}
			if b := n.k.Bandwidth("/pod/a"); b.Quota != c.want || b.Period != 40*ms || b.Burst != 0 {
				t.Errorf("%s: restored %+v", name, b)
			}
			n.wantIdempotent()
		})
	}
}

func (n *node) entry(group string) journal.Entry {
	n.t.Helper()
	e, claimed := n.j.Entry(n.id(group), plan.Quota)
	if !claimed {
		n.t.Fatal("not claimed")
	}
	return e
}

// TestRestoreOneScaled: a file that is restored by itself, and that the kernel scales once it was examined, is restored
// in the same call, without waiting.
func TestRestoreOneScaled(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		scaledNode(t, n)
		id, examined := n.id("/pod/a"), false
		n.w.Sleep = func(d time.Duration) { t.Errorf("waits for %v", d) }
		n.k.Fault = func(op, _ string, _ []byte) error {
			if examined && op == "read" {
				n.k.Fault = nil
				n.k.Scale("/pod/a")
			}
			return nil
		}
		e, _ := n.w.journal.Entry(id, plan.Quota)
		c, _, _ := n.w.examine(e, false)
		examined = true
		for _, r := range n.w.persist([]plan.Change{c}, false, 0) {
			if r.Outcome != plan.Applied {
				t.Errorf("%+v", r)
			}
		}
		if b := n.k.Bandwidth("/pod/a"); b.Quota != 16*ms || b.Period != 40*ms {
			t.Errorf("restored %+v by %+v", b, c)
		}
	})
}
