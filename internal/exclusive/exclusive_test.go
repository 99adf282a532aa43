package exclusive

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/reserve"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// quiet is an agent that takes no note.
type quiet struct{}

func (quiet) Due(time.Time, string)                                {}
func (quiet) Adopt(workload.ID, plan.Knob, plan.Value, plan.Value) {}
func (quiet) Forget(workload.ID, plan.Knob)                        {}
func (quiet) Overrode(string)                                      {}
func (quiet) Yield()                                               {}
func (quiet) Outside(do func())                                    { do() }

func newCPUs() *CPUs {
	return New(CPUs{Log: slog.New(slog.DiscardHandler), Ledger: ledger.New(), Agent: quiet{}})
}

// TestReserveIsRefused: CPUs that a group may not have are others' at once. A controller that is not enabled (EBUSY for
// as long as whoever is in the way) is asked for with the next look, not in each turn.
func TestReserveIsRefused(t *testing.T) {
	c, now := newCPUs(), time.Unix(1000, 0)
	for knob, again := range map[plan.Knob]time.Duration{plan.CPUs: gather, plan.SubtreeControl: reserveEvery,
		plan.Partition: reserveEvery} {
		c.at, c.active, c.soon = now, true, false
		c.Done(now, ledger.Want{Of: c.Of},
			[]plan.Result{{Change: plan.Change{Cgroup: workload.ID{Path: "/a", Inode: 1}, Knob: knob},
				Outcome: plan.Refused}})
		if got := c.Next(now, now.Add(time.Hour)); got != now.Add(again) {
			t.Errorf("%s: again after %v, want %v", knob, got.Sub(now), again)
		}
	}
}

// TestReservePartitionIsRefused: a group whose partition is refused has its CPUs all the same, and no quota.
func TestReservePartitionIsRefused(t *testing.T) {
	for knob, held := range map[plan.Knob]plan.Value{plan.CPUs: "0-3", plan.Exclusive: "1", plan.Partition: "1"} {
		c, has := newCPUs(), held == "1"
		id := workload.ID{Path: "/a", Inode: 1}
		c.Ledger.Adopt(plan.Key{ID: workload.ID{Path: "/a", Inode: 2}, Knob: plan.CPUs}, "0-3", held) // as on v1
		c.last.Shares = []reserve.Share{{ID: id, CPUs: cpu.Set{1}, Unlimited: true}}
		c.Done(time.Unix(1000, 0), ledger.Want{Of: c.Of},
			[]plan.Result{{Change: plan.Change{Cgroup: id, Knob: knob}, Outcome: plan.Refused}})
		if got := c.shares["/a"].Unlimited; got != has {
			t.Errorf("%s refused: unlimited %v, want %v", knob, got, has)
		}
	}
}

// TestReserveRefusalsSaid: each refusal is said once, and only those that stand are remembered.
func TestReserveRefusalsSaid(t *testing.T) {
	c := newCPUs()
	for i := range 100 {
		c.last.Refused = []reserve.Refusal{{Name: "/a", Why: "too large"},
			{Name: fmt.Sprint("/job", i), Why: "too large"}}
		c.Done(time.Unix(1000, 0), ledger.Want{Of: c.Of}, nil)
	}
	if len(c.said) != 2 {
		t.Errorf("%d refusals are remembered", len(c.said))
	}
}

// partitioned adds the partition of /a, which package sim has not. The root lacks its CPU.
type partitioned struct {
	*sim.Kernel
	text string
}

func (f partitioned) ReadFile(name string) ([]byte, error) {
	switch name {
	case "a/cpuset.cpus.partition":
		return []byte(f.text + "\n"), nil
	case "a/cpuset.cpus.exclusive":
		return []byte("3\n"), nil
	case "cpuset.cpus.effective":
		return []byte("0-2\n"), nil
	}
	return f.Kernel.ReadFile(name)
}

// TestReserveInvalidPartition: a partition that the kernel calls invalid is taken back, and begins anew after a while.
func TestReserveInvalidPartition(t *testing.T) {
	for text, want := range map[string]plan.Blocked{"root": plan.Free,
		"root invalid (a CPU is offline)": plan.Waiting} {
		k := sim.New(sim.Config{CPUs: 4, Version: 2, BurstFile: true, CPUSets: true, Seed: 1})
		k.AddGroup("/a")
		tree, err := cgroup.Detect(partitioned{k, text})
		if err != nil {
			t.Fatal(err)
		}
		inode, err := tree.CPUSetInode("/a")
		if err != nil {
			t.Fatal(err)
		}
		c, now := newCPUs(), time.Unix(1000, 0)
		c.Tree = tree
		key := plan.Key{ID: workload.ID{Path: "/a", Inode: inode}, Knob: plan.Partition}
		c.Ledger.Adopt(key, plan.Member, "root")
		groups := c.seeCPUs(now, []cgroup.CPUSet{{Path: "/a", Inode: key.Inode}}, cpu.Set{0, 1, 2, 3})
		if g := groups[0]; !g.Partition || g.Unpartitions != want {
			t.Errorf("%s: partition %v, blocked %q, want %q", text, g.Partition, g.Unpartitions, want)
		}
		back := c.Ledger.Restores(now, nil, c.Of)
		if len(back) != 1 || back[0].To != plan.Member {
			t.Errorf("%s: not asked for any more: %v", text, back)
		}
	}
}

// TestReservePartitionsOfOthers: CPUs that the root lacks are in partitions.
func TestReservePartitionsOfOthers(t *testing.T) {
	k := sim.New(sim.Config{CPUs: 4, Version: 2, CPUSets: true})
	tree, err := cgroup.Detect(partitioned{k, "root"})
	if err != nil {
		t.Fatal(err)
	}
	c, in := newCPUs(), reserve.Input{}
	c.Tree, c.Isolated = tree, cpu.Set{0}
	c.Topology = func() (cpu.Topology, error) { return k.Topology(), nil }
	if _, err := c.readMachine(&in); err != nil || in.Partitioned.String() != "3" || in.Isolated.String() != "0,3" {
		t.Errorf("in partitions %s, isolated %s (%v)", in.Partitioned, in.Isolated, err)
	}
}

// TestReserveSeesOwnersExclusiveCPUs: what an owner has in cpuset.cpus.exclusive is known before the first write, and
// is not taken for ours after it.
func TestReserveSeesOwnersExclusiveCPUs(t *testing.T) {
	k := sim.New(sim.Config{CPUs: 4, Version: 2, CPUSets: true})
	k.AddGroup("/a")
	tree, err := cgroup.Detect(partitioned{k, "member"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCPUs()
	c.Tree = tree
	id := workload.ID{Path: "/a", Inode: 1}
	for _, ours := range []cpu.Set{nil, {1, 2}} {
		if len(ours) > 0 {
			c.Ledger.Adopt(plan.Key{ID: id, Knob: plan.Exclusive}, "3", plan.Set(ours.Union(cpu.Set{3})))
		}
		in := reserve.Input{Partitions: true, Containers: []reserve.Container{{ID: workload.ID{Path: "/a/b"}}},
			Groups: []reserve.Group{c.seeCPUSet(time.Unix(1000, 0), cgroup.CPUSet{Path: "/a", Inode: 1}, workload.ID{},
				cpu.Set{0, 1, 2, 3})}}
		c.seeExclusive(&in)
		if g := in.Groups[0]; g.ExclusiveBaseline.String() != "3" || !g.Exclusive.Equal(ours) {
			t.Errorf("ours are %s: %+v", ours, g)
		}
	}
}

// TestReserveSeesPartitionsByExclusiveCPUs: another's partition without cpuset.cpus is bound to its exclusive CPUs.
func TestReserveSeesPartitionsByExclusiveCPUs(t *testing.T) {
	for _, x := range []struct {
		kind string
		of   cpu.Set // partitions
		ours bool
		want string
	}{
		{kind: "root", of: cpu.Set{3}, want: "3"},
		{kind: "isolated", of: cpu.Set{3}, want: "3"},
		{kind: "root", of: cpu.Set{3}, ours: true},
		{kind: "root"},
		{kind: "member", of: cpu.Set{3}},
	} {
		tree, err := cgroup.Detect(partitioned{sim.New(sim.Config{CPUs: 4, Version: 2, CPUSets: true}), x.kind})
		if err != nil {
			t.Fatal(err)
		}
		c, in := newCPUs(), reserve.Input{Partitioned: x.of, Groups: []reserve.Group{{ID: workload.ID{Path: "/a"},
			Partition: x.ours}}}
		c.Tree = tree
		if c.seeExclusive(&in); in.Groups[0].Baseline.String() != x.want {
			t.Errorf("%+v: bound to %q", x, in.Groups[0].Baseline)
		}
	}
}
