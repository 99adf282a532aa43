package apply

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
)

func loadDisk(n *node) ([]journal.Entry, error) {
	s, err := journal.LoadDisk(n.disk)
	return s.Entries, err
}

func TestForeignIsLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		n.do(n.change("/pod", plan.Quota, "200ms"), plan.Applied)
		n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
		n.do(n.change("/pod/b", plan.Quota, "90ms"), plan.Applied)
		n.foreign("/pod/a", plan.Quota, "77ms")
		r := n.w.Restore(nil, false)
		n.wantOutcomes(r, "/pod/a quota trampled 77ms", "/pod/b quota applied 50ms", "/pod quota applied 100ms")
		if want := "another program changed it to 77ms; left alone"; r[0].Err != want {
			t.Errorf("error %q", r[0].Err)
		}
		n.wantIdempotent()
	})
}

func TestRestoreGone(t *testing.T) {
	n := newNode(t, v2)
	for _, g := range []string{"/pod/a", "/pod/b"} {
		n.do(n.change(g, plan.Quota, "80ms"), plan.Applied)
	}
	n.k.RemoveGroup("/pod/a")
	n.k.RemoveGroup("/pod/b")
	n.k.AddGroup("/pod/b")
	n.foreign("/pod/b", plan.Quota, "80ms") // the same value in another group
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota gone ", "/pod/b quota gone ")
	if n.held("/pod/b", plan.Quota) != "80ms" {
		t.Error("the new group was written")
	}
	n.wantIdempotent()
}

func TestBaselineIsTheTarget(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.must(n.w.Rebase(n.id("/pod/a"), plan.Quota, "60000us"))
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota applied 60ms")
	n.wantIdempotent()
	if err := n.w.Rebase(n.id("/pod/a"), plan.Quota, "some"); err == nil {
		t.Error("a limit that is no time was booked")
	}
}

func TestForgottenIsNotRestored(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.must(n.w.Forget(n.id("/pod/a"), plan.Quota))
	n.wantIdempotent()
	if n.held("/pod/a", plan.Quota) != "80ms" {
		t.Error("it was written")
	}
}

// TestChangeBackStopsAtForeign: a restoring change is no excuse to write over somebody else's value.
func TestChangeBackStopsAtForeign(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.foreign("/pod/a", plan.Quota, "70ms")
	back := n.change("/pod/a", plan.Quota, "50ms")
	back.Restore = true
	n.do(back, plan.Trampled)
	n.wantIdempotent()
	if n.held("/pod/a", plan.Quota) != "70ms" {
		t.Error("it was written")
	}
}

// TestResizeToOurValueStays is ABA: the owner declares the very value that we had written.
func TestResizeToOurValueStays(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.foreign("/pod/a", plan.Quota, "80ms")
	n.must(n.j.SetBaseline(n.id("/pod/a"), plan.Quota, "80ms"))
	before := n.ours()
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota skipped 80ms")
	if n.ours() != before {
		t.Error("it was written")
	}
	n.wantIdempotent()
}

// TestResetToDeclared: the owner has put the declared limit back, which is not what stood there first.
func TestResetToDeclared(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.must(n.w.Rebase(n.id("/pod/a"), plan.Quota, "60ms"))
	n.foreign("/pod/a", plan.Quota, "60ms")
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota skipped 60ms")
	n.wantIdempotent()
}

// TestToSpecNeedsASpec: without a declared limit a foreign value stays.
func TestToSpecNeedsASpec(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.foreign("/pod/a", plan.Quota, "70ms")
	n.wantOutcomes(n.w.Restore(nil, true), "/pod/a quota trampled 70ms")
}

// TestFileGone: the controller was taken away from the group, and our value with it.
func TestFileGone(t *testing.T) {
	for _, restore := range []bool{false, true} {
		n := newNode(t, v2)
		n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
		ours, others := n.change("/pod/a", plan.Quota, "90ms"), n.change("/free", plan.Quota, "90ms")
		n.k.Fault = func(_, name string, _ []byte) error {
			if strings.HasSuffix(name, "cpu.max") {
				return syscall.ENOENT
			}
			return nil
		}
		if r := n.do(others, plan.Refused); !strings.Contains(r.Err, "not enabled") {
			t.Errorf("error %q", r.Err)
		}
		if restore {
			n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota gone ")
		} else {
			n.do(ours, plan.Gone)
		}
		n.wantIdempotent()
	}
}

// TestOnlyOursGoesToBaseline: a deviation that we found and did not make is repaired on demand only.
func TestOnlyOursGoesToBaseline(t *testing.T) {
	for _, toSpec := range []bool{false, true} {
		n := newNode(t, v2)
		n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
		n.must(n.j.SetBaseline(n.id("/pod/a"), plan.Quota, "60ms"))
		n.foreign("/pod/a", plan.Quota, "150ms")
		want := "/pod/a quota trampled 150ms"
		if toSpec {
			want = "/pod/a quota applied 60ms"
		}
		n.wantOutcomes(n.w.Restore(nil, toSpec), want)
		n.wantIdempotent()
	}
}

// TestClaimWithoutWrite: a crash came after the claim, or after the intent.
func TestClaimWithoutWrite(t *testing.T) {
	for _, intend := range []bool{false, true} {
		n := newNode(t, v2)
		before := n.files()
		n.must(n.j.Claim(journal.Entry{ID: n.id("/pod/a"), Knob: plan.Quota, Original: "50ms", Baseline: "60ms"}))
		if intend {
			n.must(n.j.Intend(n.id("/pod/a"), plan.Quota, "90ms"))
		}
		var want []string // of a mere claim there is nothing to say
		if intend {
			want = []string{"/pod/a quota skipped 50ms"}
		}
		n.wantOutcomes(n.w.Restore(nil, false), want...)
		n.wantFiles("nothing of ours stood there", before)
		n.wantIdempotent()
	}
}

func TestFilter(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.do(n.change("/free", plan.Quota, "80ms"), plan.Applied)
	onlyA := func(e journal.Entry) bool { return e.Path == "/pod/a" }
	n.wantOutcomes(n.w.Restore(onlyA, false), "/pod/a quota applied 50ms")
	n.wantOutcomes(n.w.Restore(nil, false), "/free quota applied max")
}

// TestRefusedIsTriedAgain: once after the others, and then by the next restore.
func TestRefusedIsTriedAgain(t *testing.T) {
	n := newNode(t, v2)
	before := n.files()
	for _, g := range []string{"/pod", "/pod/a", "/pod/b"} {
		n.do(n.change(g, plan.Quota, "150ms"), plan.Applied)
	}
	fail := 1
	n.k.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasPrefix(name, "pod/a/") && fail > 0 {
			fail--
			return syscall.EBUSY
		}
		return nil
	}
	n.wantOutcomes(n.w.Restore(nil, false),
		"/pod/b quota applied 50ms", "/pod quota applied 100ms", "/pod/a quota applied 50ms")
	n.wantFiles("tried again", before)

	n.do(n.change("/pod/a", plan.Quota, "150ms"), plan.Applied)
	fail = 2
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota refused 150ms")
	fail = 0
	n.start()
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota applied 50ms")
	n.wantFiles("the next restore", before)
	n.wantIdempotent()
}

// TestDyingChild: on v1 a removed group is in the way for a while. A restore waits for it, but not for ever.
func TestDyingChild(t *testing.T) {
	for _, dead := range []time.Duration{15 * ms, time.Hour} {
		n := newNode(t, v1)
		n.do(n.change("/pod", plan.Quota, "160ms"), plan.Applied)
		var slept time.Duration
		n.w.Sleep = func(d time.Duration) { slept += d }
		n.k.Fault = func(op, _ string, _ []byte) error {
			if op == "write" && slept < dead {
				return syscall.EINVAL
			}
			return nil
		}
		r := n.w.Restore(nil, false)
		if dead < time.Second {
			n.wantOutcomes(r, "/pod quota applied 100ms")
			continue
		}
		n.wantOutcomes(r, "/pod quota refused 160ms")
		if slept < 500*ms || slept > time.Second || !strings.Contains(r[0].Err, "removed a moment ago") {
			t.Errorf("slept %v, error %q", slept, r[0].Err)
		}
	}
}

func TestOtherRefusalsAreNotWaitedFor(t *testing.T) {
	for group, c := range map[string]sim.Config{"/pod": v2, "/free": v1} { // on v1 everybody may be unlimited
		n := newNode(t, c)
		n.do(n.change(group, plan.Quota, "160ms"), plan.Applied)
		n.w.Sleep = func(d time.Duration) { t.Errorf("%s: slept %v", group, d) }
		n.k.Fault = func(op, _ string, _ []byte) error {
			if op == "write" {
				return syscall.EINVAL
			}
			return nil
		}
		n.wantOutcomes(n.w.Restore(nil, false), group+" quota refused 160ms")
	}
}

func TestRestoreTo(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		id := n.id("/pod/a")
		if r := n.w.RestoreTo(id, plan.Quota, "30000us", "declared"); r.Outcome != plan.Applied ||
			r.InForce != "30ms" ||
			r.Change.Why != "declared" {
			t.Errorf("%+v", r)
		}
		if r := n.w.RestoreTo(id, plan.Quota, "30ms", "declared"); r.Outcome != plan.Skipped {
			t.Errorf("again: %+v", r)
		}
		if r := n.w.RestoreTo(id, plan.Burst, "31ms", "declared"); r.Outcome != plan.Refused {
			t.Errorf("burst above quota: %+v", r)
		}
		if r := n.w.RestoreTo(id, plan.Quota, "lots", "declared"); r.Outcome != plan.Refused {
			t.Errorf("no time: %+v", r)
		}
		n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
		if r := n.w.RestoreTo(id, plan.Quota, "40ms", "declared"); r.Outcome != plan.Applied {
			t.Errorf("of our own value: %+v", r)
		}
		n.w.Restore(nil, false) // the burst that was refused
		n.wantIdempotent()
		n.must(n.j.Close())
		if r := n.w.RestoreTo(id, plan.Quota, "40ms", "declared"); r.Outcome != plan.Skipped {
			t.Errorf("nothing to do, and no journal: %+v", r)
		}
		if r := n.w.RestoreTo(id, plan.Quota, "41ms", "declared"); r.Outcome != plan.Refused {
			t.Errorf("no journal: %+v", r)
		}
		n.k.RemoveGroup("/pod/a")
		if r := n.w.RestoreTo(id, plan.Quota, "30ms", "declared"); r.Outcome != plan.Gone {
			t.Errorf("gone: %+v", r)
		}
	})
}
