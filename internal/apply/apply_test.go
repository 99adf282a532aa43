package apply

import (
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
)

func TestApplied(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		before := n.files()
		changes := []plan.Change{ // in the worst order
			n.change("/pod/a", plan.Burst, "150ms"),
			n.change("/pod/a", plan.Quota, "150ms"),
			n.change("/pod/b", plan.Quota, "30ms"),
			n.change("/pod", plan.Quota, "180ms"),
			n.change("/free", plan.Weight, "200"),
		}
		given := slices.Clone(changes)
		r := n.w.Do(changes)
		if !slices.Equal(changes, given) {
			t.Error("the caller's changes are in another order now")
		}
		n.wantOutcomes(r, "/pod quota applied 180ms", "/pod/a quota applied 150ms", "/pod/b quota applied 30ms",
			"/pod/a burst applied 150ms", "/free weight applied 200")
		if r[0].At != n.k.Now() {
			t.Errorf("at %v", r[0].At)
		}
		n.w.Restore(nil, false)
		n.wantFiles("restored", before)
		n.wantIdempotent()
	})
}

func TestUnchangedIsNotWritten(t *testing.T) {
	n := newNode(t, v2)
	before := n.ours()
	n.do(n.change("/pod/a", plan.Quota, "50ms"), plan.Skipped)
	n.do(n.change("/pod/a", plan.Quota, "50000us"), plan.Skipped)
	n.do(n.change("/pod/a", plan.Quota, "50.0004ms"), plan.Skipped) // the kernel's files have no nanoseconds
	if n.ours() != before || len(n.j.Entries()) != 0 {
		t.Errorf("%d writes, entries %+v", n.ours()-before, n.j.Entries())
	}
}

func TestTrampledIsNotWritten(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		n.do(n.change("/pod/a", plan.Quota, "60ms"), plan.Applied)
		stale := n.change("/pod/a", plan.Quota, "70ms")
		n.foreign("/pod/a", plan.Quota, "55ms")
		before := n.ours()
		if r := n.do(stale, plan.Trampled); r.InForce != "55ms" || !strings.Contains(r.Err, "another program") {
			t.Errorf("%+v", r)
		}
		if n.ours() != before || len(n.j.Entries()) != 0 {
			t.Errorf("%d writes, entries %+v", n.ours()-before, n.j.Entries())
		}
		// The decision is taken again, knowing. What stands there now is the original.
		n.do(n.change("/pod/a", plan.Quota, "70ms"), plan.Applied)
		n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota applied 55ms")
	})
}

func TestOwnValueIsNotForeign(t *testing.T) {
	n := newNode(t, v2)
	stale := n.change("/pod/a", plan.Quota, "70ms")
	n.do(n.change("/pod/a", plan.Quota, "60ms"), plan.Applied)
	if r := n.do(stale, plan.Trampled); !strings.Contains(r.Err, "our own") {
		t.Errorf("%+v", r)
	}
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota applied 50ms")
}

// TestResetByOwner: the owner puts the limit back, and we raise it again.
func TestResetByOwner(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.foreign("/pod/a", plan.Quota, "50ms")
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.foreign("/pod/a", plan.Quota, "40ms")
	n.do(n.change("/pod/a", plan.Quota, "90ms"), plan.Applied)
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota applied 40ms")
}

func TestRangeIsClaimedAgainWhenLeft(t *testing.T) {
	n := newNode(t, v2)
	c := n.change("/pod/a", plan.Quota, "60ms")
	c.Min, c.Max = "50ms", "60ms"
	n.do(c, plan.Applied)
	c = n.change("/pod/a", plan.Quota, "90ms")
	c.Min, c.Max = "", ""
	n.do(c, plan.Applied)
	e, _ := n.j.Entry(n.id("/pod/a"), plan.Quota)
	if e.Original != "50ms" || e.Min != "60ms" || e.Max != "90ms" {
		t.Errorf("%+v", e)
	}
}

func TestGone(t *testing.T) {
	for name, ruin := range map[string]func(n *node){
		"vanished":  func(n *node) { n.k.RemoveGroup("/pod/a") },
		"recreated": func(n *node) { n.k.RemoveGroup("/pod/a"); n.k.AddGroup("/pod/a") },
	} {
		each(t, func(t *testing.T, n *node) {
			n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
			stale := n.change("/pod/a", plan.Quota, "90ms")
			unclaimed := n.change("/pod/a", plan.Burst, "10ms")
			ruin(n)
			before := n.files()
			n.do(stale, plan.Gone)
			n.do(unclaimed, plan.Gone)
			n.wantFiles(name, before)
			n.wantIdempotent()
		})
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, group string
		knob        plan.Knob
		to          plan.Value
		config      sim.Config
		want        string
	}{
		{"quota under burst", "/pod/b", plan.Quota, "10ms", v2, "burst 20ms above quota 10ms"},
		{"burst over quota", "/pod/a", plan.Burst, "50.001ms", v1, "burst 50.001ms above quota 50ms"},
		{"quota over parent's", "/pod/a", plan.Quota, "150ms", v1,
			"above the quota of the parent /pod, 100ms each 100ms"},
		{"quota over grandparent's", "/pod/open/x", plan.Quota, "150ms", v1,
			"above the quota of the parent /pod, 100ms each 100ms"},
		{"quota under child's", "/pod", plan.Quota, "30ms", v1, "below the quota of the child /pod/a, 50ms each 100ms"},
		{"quota under the least", "/pod/a", plan.Quota, "999us", v1, "quota 999\u00b5s below the least, 1ms"},
		{"no burst", "/pod/a", plan.Burst, "1ms", sim.Config{Version: 2}, "5.14"},
		{"not a time", "/pod/a", plan.Quota, "much", v2, `value "much" is not a time`},
		{"negative", "/pod/a", plan.Quota, "-1ms", v2, "negative"},
		{"burst without bound", "/pod/a", plan.Burst, "max", v2, "cannot be max"},
		{"not a flag", "/pod/a", plan.Idle, "2", v2, "0 or 1"},
		{"not a knob", "/pod/a", "nice", "2", v2, "unknown knob"},
		{"weight out of range", "/pod/a", plan.Weight, "10001", v2, "numerical result out of range"},
		{"no cpuset", "/pod/a", plan.CPUs, "0", v2, "cpuset controller is not enabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, c.config)
			n.k.AddGroup("/pod/open/x")
			before := n.files()
			change := plan.Change{Cgroup: n.id(c.group), Knob: c.knob, To: c.to}
			if v, err := Read(n.tree, c.group, c.knob); err == nil {
				change.From = v
			} else {
				change.From = "0s"
			}
			if c.knob == plan.CPUs {
				change.From = ""
			}
			r := n.do(change, plan.Refused)
			if !strings.Contains(r.Err, c.want) {
				t.Errorf("error %q does not say %q", r.Err, c.want)
			}
			n.wantFiles("refused", before)
			n.wantIdempotent() // nothing of ours stands there
		})
	}
}

func TestRefusedForWantOfRights(t *testing.T) {
	n := newNode(t, v2)
	for errno, want := range map[syscall.Errno]string{syscall.EACCES: "CAP_DAC_OVERRIDE", syscall.EPERM: "run as root",
		syscall.EROFS: "mount them writable"} {
		n.k.Fault = func(op, _ string, _ []byte) error {
			if op == "write" {
				return errno
			}
			return nil
		}
		if r := n.do(n.change("/pod/a", plan.Quota, "60ms"), plan.Refused); !strings.Contains(r.Err, want) {
			t.Errorf("%v: %q", errno, r.Err)
		}
	}
}

// TestRefusedTwice: what was refused is not what stands in the file, however often.
func TestRefusedTwice(t *testing.T) {
	n := newNode(t, v1)
	before := n.files()
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	for _, to := range []plan.Value{"110ms", "120ms", "130ms"} {
		if r := n.do(n.change("/pod/a", plan.Quota, to), plan.Refused); r.InForce != "80ms" {
			t.Errorf("in force %s", r.InForce)
		}
	}
	n.start()
	n.wantOutcomes(n.w.Restore(nil, false), "/pod/a quota applied 50ms")
	n.wantFiles("restored", before)
}

func TestClamped(t *testing.T) {
	for to, want := range map[plan.Value]plan.Value{"1": "2", "1000000": "262144"} {
		n := newNode(t, v1)
		if r := n.do(n.change("/pod/a", plan.Weight, to), plan.Clamped); r.InForce != want {
			t.Errorf("in force %s", r.InForce)
		}
		n.start()
		n.wantOutcomes(n.w.Restore(nil, false), "/pod/a weight applied 1024")
	}
}

func TestWhatAKernelClamps(t *testing.T) {
	weight := func(from, to plan.Value) plan.Change { return plan.Change{Knob: plan.Weight, From: from, To: to} }
	for _, c := range []struct {
		change plan.Change
		held   plan.Value
		want   bool
	}{
		{weight("100", "1"), "2", true}, {weight("100", "500"), "400", true}, {weight("100", "500"), "100", false},
		{weight("100", "500"), "600", false}, {weight("100", "500"), "90", false}, {weight("100", "1"), "200", false},
		{plan.Change{Knob: plan.Quota, From: "100ms", To: "500ms"}, "400ms", false},
	} {
		if got := clamps(c.change, c.held); got != c.want {
			t.Errorf("%s from %s to %s, held %s: %v", c.change.Knob, c.change.From, c.change.To, c.held, got)
		}
	}
}

// slowDisk is a disk whose syncs take so long that something happens meanwhile.
type slowDisk struct {
	*journal.Memory
	meanwhile func()
}

type slowFile struct {
	journal.File
	disk *slowDisk
}

func (d *slowDisk) Append(name string) (journal.File, error) {
	f, err := d.Memory.Append(name)
	return slowFile{f, d}, err
}

func (f slowFile) Sync() error { f.disk.meanwhile(); return nil }

func TestWhileTheJournalSyncs(t *testing.T) {
	for want, meanwhile := range map[plan.Outcome]func(n *node){
		plan.Trampled: func(n *node) { n.foreign("/pod/a", plan.Quota, "70ms") },
		plan.Gone:     func(n *node) { n.k.RemoveGroup("/pod/a"); n.k.AddGroup("/pod/a") },
	} {
		n := newNode(t, v2)
		n.must(n.j.Close())
		disk := &slowDisk{n.disk, func() { meanwhile(n) }}
		j, err := journal.OpenDisk(disk, "boot", n.k.Now)
		n.must(err)
		n.j, n.w = j, New(n.tree, j, n.k.Now)
		c, before := n.change("/pod/a", plan.Quota, "80ms"), n.ours()
		n.do(c, want)
		if n.ours() != before {
			t.Errorf("%s: written all the same", want)
		}
		n.wantIdempotent()
	}
}

func TestTrampledAfterTheWrite(t *testing.T) {
	n := newNode(t, v2)
	c := n.change("/pod/a", plan.Quota, "80ms")
	written := false
	n.k.Fault = func(op, _ string, _ []byte) error {
		if op == "read" && written {
			n.k.Fault = nil
			n.foreign("/pod/a", plan.Quota, "30ms")
		}
		written = written || op == "write"
		return nil
	}
	if r := n.do(c, plan.Trampled); r.InForce != "30ms" || r.Taken != 1 {
		t.Errorf("in force %s, %d writes taken", r.InForce, r.Taken)
	}
	n.wantIdempotent()
	if n.held("/pod/a", plan.Quota) != "30ms" {
		t.Error("the other's value is gone")
	}
}

// TestPeriodIsTheOwners: one that its owner writes in the same moment stands. On v2 quota and period are in one file.
func TestPeriodIsTheOwners(t *testing.T) {
	n := newNode(t, v2)
	n.k.Fault = func(op, name string, _ []byte) error {
		if op == "write" && path.Base(name) == "cpu.max" {
			n.k.Fault = nil
			return n.k.ForeignWrite(name, "50000 200000")
		}
		return nil
	}
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	if got := n.k.Bandwidth("/pod/a"); got.Quota != 80*ms || got.Period != 200*ms {
		t.Errorf("the owner's period of 200ms is undone: %v", got)
	}
}

func TestReadBackFails(t *testing.T) {
	n := newNode(t, v2)
	before := n.files()
	c := n.change("/pod/a", plan.Quota, "80ms")
	written := false
	n.k.Fault = func(op, _ string, _ []byte) error {
		if op == "read" && written {
			return syscall.EIO
		}
		written = written || op == "write"
		return nil
	}
	if r := n.do(c, plan.Applied); r.InForce != "" || r.Taken != 1 || !strings.Contains(r.Err, "cannot be read back") {
		t.Errorf("%+v", r)
	}
	n.k.Fault = nil
	n.w.Restore(nil, false)
	n.wantFiles("restored", before)
}

func TestHold(t *testing.T) {
	n := newNode(t, v2)
	before := n.files()
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
	n.w.SetHold(true)
	n.do(n.change("/pod/a", plan.Quota, "90ms"), plan.Skipped)
	if !n.w.hold.Load() || n.held("/pod/a", plan.Quota) != "80ms" {
		t.Error("written while held")
	}
	back := n.change("/pod/a", plan.Quota, "50ms")
	back.Restore = true
	n.do(back, plan.Applied)
	n.wantFiles("restored", before)
	n.wantIdempotent()
	n.w.SetHold(false)
	n.do(n.change("/pod/a", plan.Quota, "90ms"), plan.Applied)
}

func TestRestoreOfWhatIsNotOursIsNotWritten(t *testing.T) {
	n := newNode(t, v2)
	before := n.ours()
	c := n.change("/pod/a", plan.Quota, "40ms")
	c.Restore = true
	n.do(c, plan.Skipped)
	if n.ours() != before {
		t.Error("it was written")
	}
}

// TestNoJournalNoWrite: what cannot be journalled is not written.
func TestNoJournalNoWrite(t *testing.T) {
	n := newNode(t, v2)
	n.do(n.change("/pod/b", plan.Quota, "80ms"), plan.Applied)
	before := n.ours()
	n.must(n.j.Close())
	n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Refused) // a claim
	n.do(n.change("/pod/b", plan.Quota, "90ms"), plan.Refused) // an intent
	n.do(n.change("/free", plan.Idle, "1"), plan.Refused)      // two claims
	if n.ours() != before {
		t.Error("written without a journal")
	}
	back := n.change("/pod/b", plan.Quota, "50ms")
	back.Restore = true
	if r := n.do(back, plan.Applied); r.Err == "" { // but restoring goes on, and says so
		t.Error("not a word of the journal")
	}
}

// TestLoweringsWithoutAJournal: a value of ours goes all the way back, which the journal need not be told; whatever
// else a lowering starts from stays.
func TestLoweringsWithoutAJournal(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		for _, c := range []struct {
			foreign plan.Value // "": ours stays
			to      plan.Value
			want    plan.Outcome
			left    plan.Value
		}{
			{"", "70ms", plan.Applied, "50ms"},
			{"", "90ms", plan.Refused, "80ms"},
			{"75ms", "60ms", plan.Refused, "75ms"},
			{"75ms", "50ms", plan.Refused, "75ms"},
		} {
			n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
			if c.foreign != "" {
				n.foreign("/pod/a", plan.Quota, c.foreign)
			}
			n.must(n.j.Close())
			n.do(n.change("/pod/a", plan.Quota, c.to), c.want)
			if got := n.held("/pod/a", plan.Quota); got != c.left {
				t.Errorf("%q over ours, to %s: the file holds %s, want %s", c.foreign, c.to, got, c.left)
			}
			n.start()
			n.w.Restore(nil, false)
			n.foreign("/pod/a", plan.Quota, "50ms")
		}
	})
}

// TestJournalBeforeKernel: at the instant of each write the journal on disk knows the value and the original.
func TestJournalBeforeKernel(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		writes := 0
		n.k.Fault = func(op, name string, data []byte) error {
			if op == "read" {
				return nil
			}
			writes++
			s, err := loadDisk(n)
			n.must(err)
			for _, e := range s {
				if e.Path == "/pod/a" && e.Knob == plan.Quota && e.Original == "50ms" && e.Ours("80ms") {
					return nil
				}
			}
			t.Errorf("write of %q to %s: the journal holds %+v", data, name, s)
			return nil
		}
		n.do(n.change("/pod/a", plan.Quota, "80ms"), plan.Applied)
		if writes != 1 {
			t.Errorf("%d writes", writes)
		}
	})
}
