package reserve

import (
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Partitions: making own CPUs exclusive by the kernel's word.
//
// A cpuset binds who is in a group. Tasks that are in none that can be bound, in the root, may run anywhere. A partition takes
// its CPUs from everybody, the root too, and gives them a scheduling domain of their own. From 6.7 a group may be one
// though the groups above it are none, if each of these hands the CPUs down in cpuset.cpus.exclusive.
//
// So on top of the cpusets, which stand by themselves, each container that has CPUs to itself alone is made a
// partition. Where the kernel refuses, or calls it invalid, it is taken back, and the cpusets remain.

// partition has each container with CPUs to itself be a partition, and the groups above it hand the CPUs down.
func (t *turn) partition(in Input, out *Output) {
	if !in.Partitions || in.Rules.Policy != strategy.ReserveAuto {
		return
	}
	const why = "CPUs of a partition"
	down := map[*node]cpu.Set{}
	for i, sh := range out.Shares {
		n := t.at[sh.Path]
		if !sh.Unlimited || n.Unpartitions != plan.Free || n.Partition && !n.Exclusive.Equal(sh.Own) {
			continue // the last: it ends first, and begins anew in the next turn
		}
		out.Shares[i].Partition = n.Partition
		out.Intents = append(out.Intents, intent(n.ID, plan.Exclusive, sh.Own.String(), why), intent(n.ID, plan.Partition, "root", "CPUs of its own"))
		for at := n.parent; at != nil; at = at.parent {
			down[at] = down[at].Union(sh.Own)
		}
	}
	for _, n := range t.nodes {
		if len(down[n]) > 0 {
			out.Intents = append(out.Intents, intent(n.ID, plan.Exclusive, down[n].String(), why))
		}
	}
}
