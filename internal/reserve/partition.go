package reserve

import (
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Fencing: making own CPUs exclusive by the kernel's word.
//
// A cpuset binds who is in a group. Who is in none that can be bound, in the root, may run anywhere. A partition takes
// its CPUs from everybody, the root too, and gives them a scheduling domain of their own. From 6.7 a group may be one
// though the groups above it are none, if each of these hands the CPUs down in cpuset.cpus.exclusive.
//
// So on top of the cpusets, which stand by themselves, each container that has CPUs to itself alone is made a
// partition. Where the kernel refuses, or calls it invalid, it is taken back, and the cpusets remain.

// partition is what is remembered of one group's part in partitions.
type partition struct {
	exclusive cpu.Set // that stands
	partition bool    // it is one
	retry     backoff
}

// partitions finds what each group's part shall be.
func (s *State) partitions(in Input, t *turn, out *Output) map[workload.ID]partition {
	wanted := map[workload.ID]partition{}
	if !in.Partitions || in.Rules.Policy != strategy.ReserveAuto {
		return wanted
	}
	for i, sh := range out.Shares {
		n := t.at[sh.Path]
		is := s.partitioned[n.ID]
		if in.Broken[sh.Path] && is != nil && is.partition {
			is.retry.hit(in.Now)
		}
		switch {
		case !sh.Unlimited || is != nil && !is.retry.Ready(in.Now):
			continue
		case is != nil && is.partition && !is.exclusive.Equal(sh.Own): // it ends first, and begins anew in the next turn
			continue
		}
		wanted[n.ID] = partition{exclusive: sh.Own, partition: true}
		out.Shares[i].Partition = is != nil && is.partition
		for at := n.parent; at != nil; at = at.parent {
			wanted[at.ID] = partition{exclusive: wanted[at.ID].exclusive.Union(sh.Own)}
		}
	}
	return wanted
}

// partition makes the changes.
func (s *State) partition(in Input, t *turn, out *Output) {
	wanted := s.partitions(in, t, out)
	var ids []workload.ID
	for _, n := range t.nodes {
		ids = append(ids, n.ID)
	}
	for id := range s.partitioned {
		if !slices.Contains(ids, id) { // it is gone, and its part with it
			delete(s.partitioned, id)
		}
	}
	for _, id := range ids {
		is, want := partition{}, wanted[id]
		if f := s.partitioned[id]; f != nil {
			is = *f
		}
		if is.partition != want.partition {
			out.Changes = append(out.Changes, partitionChange(id, want.partition))
		}
		if !is.exclusive.Equal(want.exclusive) {
			out.Changes = append(out.Changes, plan.Change{Cgroup: id, Knob: plan.Exclusive, From: plan.Value(is.exclusive.String()),
				To: plan.Value(want.exclusive.String()), Restore: len(want.exclusive) == 0, Why: "CPUs of a partition"})
		}
	}
	plan.Order(out.Changes)
}

func partitionChange(id workload.ID, begin bool) plan.Change {
	c := plan.Change{Cgroup: id, Knob: plan.Partition, From: plan.Member, To: "root", Why: "CPUs of its own"}
	if !begin {
		c.From, c.To, c.Restore = c.To, c.From, true
	}
	return c
}

// learnPartition books what became of a change.
func (s *State) learnPartition(now time.Time, r plan.Result) {
	id, knob := r.Change.Cgroup, r.Change.Knob
	if knob != plan.Exclusive && knob != plan.Partition {
		return
	}
	f := s.partitioned[id]
	if f == nil {
		f = &partition{}
		s.partitioned[id] = f
	}
	stands := r.Outcome == plan.Applied && !r.Change.Restore
	switch {
	case r.Outcome == plan.Skipped && !r.Change.Restore: // only rehearsed
	case r.Outcome == plan.Refused && r.Change.Restore: // it stands still
	case knob == plan.Partition:
		f.partition = stands
	case stands:
		f.exclusive, _ = cpu.ParseSet(string(r.InForce))
	case r.Outcome != plan.Refused:
		f.exclusive = nil
	}
	if !stands && !r.Change.Restore && r.Outcome != plan.Skipped {
		f.retry.hit(now)
	}
	if !f.partition && len(f.exclusive) == 0 && f.retry.Ready(now) {
		delete(s.partitioned, id)
	}
}

// fencing says whether anything of a partition stands.
func (s *State) fencing() bool {
	for _, f := range s.partitioned {
		if f.partition || len(f.exclusive) > 0 {
			return true
		}
	}
	return false
}
