package reserve

import (
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Partitions: CPUs that the kernel keeps exclusive.
//
// A cpuset binds the tasks of its group. Tasks in the root, which has no cpuset to write, may run anywhere. A partition
// takes its CPUs away from all other groups, the root included, and gives them a scheduling domain of their own. Since
// 6.7 a group may be a partition although its ancestors are none, if each of them passes the CPUs down in
// cpuset.cpus.exclusive. There they are added to those that the ancestor's owner passes down to its own partitions.
//
// So in addition to the cpusets, which work without partitions, each container whose CPUs are all exclusive is made a
// partition. Where the kernel refuses the partition or calls it invalid, it is removed, and the cpusets remain.

// partition makes the intents that turn containers into partitions, and those by which ancestors pass the CPUs down.
func (t *turn) partition(in Input, out *Output) {
	if !in.Partitions || in.Rules.Policy != strategy.ReserveAuto {
		return
	}
	const why = "CPUs of a partition"
	down := map[*node]cpu.Set{}
	for i, sh := range out.Shares {
		n := t.at[sh.Path]
		switch {
		case !sh.Unlimited, n.Unpartitions != plan.Free, len(n.ExclusiveBaseline) > 0:
			continue
		case n.Partition && !n.Exclusive.Equal(sh.Own): // it ends in this turn, and a new one begins in the next
			continue
		}
		out.Shares[i].Partition = n.Partition
		out.Intents = append(out.Intents, intent(n.ID, plan.Exclusive, sh.Own.String(), why),
			intent(n.ID, plan.Partition, "root", "exclusive CPUs"))
		for at := n.parent; at != nil; at = at.parent {
			down[at] = down[at].Union(sh.Own)
		}
	}
	for _, n := range t.nodes {
		if len(down[n]) > 0 {
			passed := down[n].Union(n.ExclusiveBaseline)
			out.Intents = append(out.Intents, intent(n.ID, plan.Exclusive, passed.String(), why))
		}
	}
}
