package reserve

import (
	"testing"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestIntentsByWhatIsLeftAlone: where another program has the CPUs of the node, or a file, nothing is wanted of these,
// and no CPU of a group that another program bound becomes exclusive, be it all CPUs.
func TestIntentsByWhatIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Input)
		want   map[plan.Knob]int
	}{
		"all is ours": {func(*Input) {},
			map[plan.Knob]int{plan.SubtreeControl: 2, plan.CPUs: 2, plan.Exclusive: 2, plan.Partition: 1}},
		"the node is another's":  {func(in *Input) { in.Owner = "the kubelet" }, map[plan.Knob]int{}},
		"nobody is to have CPUs": {func(in *Input) { in.Rules.Policy = strategy.ReserveNone }, map[plan.Knob]int{}},
		"a partition is another's": {func(in *Input) { in.Groups[1].Unpartitions = plan.Foreign },
			map[plan.Knob]int{plan.SubtreeControl: 2, plan.CPUs: 2}},
		"or was refused": {func(in *Input) { in.Groups[1].Unpartitions = plan.Waiting },
			map[plan.Knob]int{plan.SubtreeControl: 2, plan.CPUs: 2}},
		"another group is bound": {func(in *Input) { in.Groups[2].Blocked = plan.Foreign },
			map[plan.Knob]int{plan.SubtreeControl: 2}},
		"there are no partitions": {func(in *Input) { in.Partitions = false },
			map[plan.Knob]int{plan.SubtreeControl: 2, plan.CPUs: 2}},
		"by policy there are none": {func(in *Input) { in.Rules.Policy = strategy.ReserveCPUSet },
			map[plan.Knob]int{plan.SubtreeControl: 2, plan.CPUs: 2}},
		"nobody asks for their own": {func(in *Input) { in.Containers = nil },
			map[plan.Knob]int{plan.SubtreeControl: 2}},
	} {
		topology := shape{1, 1, 1, 4, 1}.topology()
		id := func(path string, inode uint64) workload.ID { return workload.ID{Path: path, Inode: inode} }
		in := Input{Rules: strategy.Reserve{Policy: strategy.ReserveAuto, MinShared: 1}, Inherits: true,
			Partitions: true, Topology: topology,
			Groups: []Group{{ID: id("/p", 2)}, {ID: id("/p/a", 3)},
				{ID: id("/x", 4), CPUs: topology.Set(), Baseline: topology.Set()}},
			Containers: []Container{{ID: id("/p/a", 3), Request: 1, Limit: 1}}, Ancestors: []workload.ID{id("/", 1),
				id("/p", 2)}}
		c.change(&in)
		out := new(State).Decide(in)
		got := map[plan.Knob]int{}
		for _, i := range out.Intents {
			got[i.Knob]++
		}
		for _, knob := range []plan.Knob{plan.SubtreeControl, plan.CPUs, plan.Exclusive, plan.Partition} {
			if got[knob] != c.want[knob] {
				t.Errorf("%s: %d intents for %s, want %d", name, got[knob], knob, c.want[knob])
			}
		}
		if pinned := in.Groups[2].Blocked == plan.Foreign; pinned != (len(out.Pinned) == 1) || pinned &&
			len(out.Shares) > 0 {
			t.Errorf("%s: pinned %v, shares %v", name, out.Pinned, out.Shares)
		}
	}
}

// TestWhoCannotHaveCPUsIsServedByThePool: what the node's rule asks for a container that another program bound is kept
// in the share pool, and nobody gets it.
func TestWhoCannotHaveCPUsIsServedByThePool(t *testing.T) {
	for request, want := range map[float64]int{2: 1, 3: 0} {
		topology := shape{1, 1, 1, 4, 1}.topology()
		bound, asks := workload.ID{Path: "/bound", Inode: 1}, workload.ID{Path: "/asks", Inode: 2}
		in := Input{Rules: strategy.Reserve{Policy: strategy.ReserveCPUSet, MinShared: 1, All: true}, Inherits: true,
			Topology: topology,
			Groups:   []Group{{ID: asks}, {ID: bound, CPUs: topology.Set()[:1], Baseline: topology.Set()[:1]}},
			Containers: []Container{{ID: bound, Request: 2, Limit: 2, ByNode: true},
				{ID: asks, Request: request, Limit: request, ByNode: true}}}
		if out := new(State).Decide(in); len(out.Shares) != want {
			t.Errorf("of 4 CPUs, 2 of which are asked for in the pool, %v: %d shares, want %d (%v)", request,
				len(out.Shares), want, out.Refused)
		}
	}
}
