package apply

import (
	"testing"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
)

// countedDisk counts the syncs of the journal's file.
type countedDisk struct {
	*journal.Memory
	syncs int
}

type countedFile struct {
	journal.File
	disk *countedDisk
}

func (d *countedDisk) Create(name string) (journal.File, error) {
	f, err := d.Memory.Create(name)
	return &countedFile{f, d}, err
}

func (f *countedFile) Sync() error {
	f.disk.syncs++
	return f.File.Sync()
}

// counted has the node's journal on a disk whose syncs are counted.
func (n *node) counted() *countedDisk {
	n.t.Helper()
	d := &countedDisk{Memory: journal.NewMemory()}
	j, err := journal.OpenDisk(d, "boot", n.k.Now)
	n.must(err)
	n.j, n.w = j, New(n.tree, j, n.k.Now)
	d.syncs = 0
	return d
}

// raises are changes that need claims, some of two files.
func (n *node) raises() []plan.Change {
	return []plan.Change{
		n.change("/pod", plan.Quota, "200ms"),
		n.change("/pod/a", plan.Quota, "100ms"),
		n.change("/pod/b", plan.Quota, "100ms"),
		n.change("/pod/a", plan.Burst, "50ms"),
		n.change("/free", plan.Weight, "200"),
	}
}

// TestClaimedBeforehand: what was claimed beforehand waits for the disk once, and its writes do not.
func TestClaimedBeforehand(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		d, before := n.counted(), n.files()
		changes := n.raises()
		n.w.Claim(changes)
		if d.syncs != 1 {
			t.Errorf("%d syncs for all claims", d.syncs)
		}
		n.wantFiles("claimed", before)
		for _, r := range n.w.Do(changes) {
			if r.Outcome != plan.Applied {
				t.Errorf("%s of %s: %s %s", r.Change.Knob, r.Change.Cgroup.Path, r.Outcome, r.Err)
			}
		}
		if d.syncs != 1 {
			t.Errorf("%d syncs of writes whose files were claimed", d.syncs-1)
		}
		n.w.Claim(changes) // which stand now
		if d.syncs != 1 {
			t.Error("claimed again")
		}
		n.w.Restore(nil, false)
		n.wantFiles("restored", before)
		n.wantIdempotent()
	})
}

// TestClaimsAreNoWrites: claims that no write followed are nothing to put back.
func TestClaimsAreNoWrites(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		before, writes := n.files(), n.ours()
		n.w.Claim(n.raises())
		for _, r := range n.w.Restore(nil, false) {
			if r.Outcome != plan.Skipped {
				t.Errorf("%s of %s: %s %s", r.Change.Knob, r.Change.Cgroup.Path, r.Outcome, r.Err)
			}
		}
		if n.ours() != writes {
			t.Errorf("%d writes", n.ours()-writes)
		}
		n.wantFiles("restored", before)
		n.wantIdempotent()
	})
}

// TestNothingToClaim: of what is not written, or needs no claim, nothing is claimed.
func TestNothingToClaim(t *testing.T) {
	stale := func(n *node) plan.Change {
		c := n.change("/pod/a", plan.Quota, "100ms")
		n.foreign("/pod/a", plan.Quota, "60ms")
		return c
	}
	for name, change := range map[string]func(n *node) plan.Change{
		"another program's": stale,
		"the same value":    func(n *node) plan.Change { return n.change("/pod/a", plan.Quota, "50ms") },
		"a refill": func(n *node) plan.Change {
			c := n.change("/pod/a", plan.Burst, "0s")
			c.Refill = true
			return c
		},
		"a restore": func(n *node) plan.Change {
			c := n.change("/pod/a", plan.Quota, "60ms")
			c.Restore = true
			return c
		},
		"a repair": func(n *node) plan.Change {
			c := n.change("/pod/a", plan.Quota, "60ms")
			c.Repair = true
			return c
		},
		"while writing is held": func(n *node) plan.Change {
			n.w.SetHold(true)
			return n.change("/pod/a", plan.Quota, "100ms")
		},
		"no value": func(n *node) plan.Change { return n.change("/pod/a", plan.Quota, "much") },
		"of a group that is gone": func(n *node) plan.Change {
			c := n.change("/free", plan.Weight, "200")
			n.k.RemoveGroup("/free")
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, v1)
			n.w.Claim([]plan.Change{change(n)})
			if left := n.j.Entries(); len(left) > 0 {
				t.Errorf("claimed: %+v", left)
			}
		})
	}
}

// TestClaimedQuota: the journal has the quota that an owner has written beside a burst of ours, and the next one from
// the next write of the burst on. A change that does not know it leaves it.
func TestClaimedQuota(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		d := n.counted()
		for _, x := range []struct {
			burst, quota, want plan.Value
			syncs              int
		}{
			{"50ms", "50ms", "50ms", 1},
			{"40ms", "50ms", "50ms", 1},
			{"50ms", "40ms", "40ms", 2},
			{"900µs", "", "40ms", 3}, // below the claimed range
		} {
			c := n.change("/pod/a", plan.Burst, x.burst)
			c.Quota = x.quota
			n.do(c, plan.Applied)
			j, err := journal.OpenDisk(d.Memory, "boot", n.k.Now)
			n.must(err)
			if e, _ := j.Entry(c.Cgroup, c.Knob); e.Quota != x.want || d.syncs != x.syncs {
				t.Errorf("%+v: the journal has %s after %d syncs", x, e.Quota, d.syncs)
			}
		}
	})
}
