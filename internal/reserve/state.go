package reserve

import (
	"maps"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Confinement: from an allocation to the cpuset.cpus of each group.
//
// A container with exclusive CPUs is bound to them; one that may use more than it reserves (its limit is above its
// request) may use the share pool as well, unless it requests to be strict. All other groups are confined to the
// share pool. On v2 an empty set inherits, and only the topmost group of each branch is written. On v1 each group has
// its own set. The groups above a container with exclusive CPUs have the share pool and the exclusive CPUs below them.
// The root cannot be confined; on v1 a shield moves its tasks into a group that is confined like any other. The
// baseline of the shield is all CPUs of the root.
//
// A group's baseline is the set that its owner gave it. No group ever gets a CPU outside its baseline. A group that its
// owner has bound to fewer CPUs than its parent has is pinned: it is left alone, and its CPUs never become exclusive,
// so that no pinned group loses a CPU. A branch that is bound as a whole keeps a CPU for the other groups in it.
//
// The value for a file is an intent. The ledger decides whose value a file holds and what is restored: a group that
// another program has bound is blocked as foreign, and counts as pinned.

// Group is a control group with CPUs.
type Group struct {
	workload.ID
	CPUs     cpu.Set      // the value of its file; empty: it inherits
	Baseline cpu.Set      // the set that its owner gave it
	Lost     cpu.Set      // CPUs of the baseline that the kernel has removed (v1)
	Blocked  plan.Blocked // why the file may not be written now
	Problem  string       // why the last write was refused
	NoQuota  bool         // we removed its quota: it keeps its CPUs until the quota is restored
	// Our partition of it and the CPUs of that, and why none may be made now.
	Exclusive    cpu.Set
	Partition    bool
	Unpartitions plan.Blocked
	// What its owner has in cpuset.cpus.exclusive, of a container that requests CPUs and of the groups above it.
	ExclusiveBaseline cpu.Set
}

// Container is a container that requests exclusive CPUs.
type Container struct {
	workload.ID         // in the hierarchy of the cpu controller
	Request     float64 // CPUs
	Limit       float64 // CPUs; +Inf: none
	Strict      bool
	ByNode      bool // the node's rule requests them: see Want
}

// Input is everything that the decisions of a turn depend on.
type Input struct {
	Rules      strategy.Reserve
	Owner      string // another program that allocates the node's CPUs, so that we may not; "": none
	Inherits   bool   // an empty set inherits (v2)
	Partitions bool   // the kernel allows partitions below groups that are none (v2, 6.7+)
	Topology   cpu.Topology
	Isolated   cpu.Set // CPUs without load balancing: isolated ones, and those in partitions, ours included
	// Partitioned is the CPUs in partitions, ours included (v2): a CPU of another's partition that is written to a
	// sibling makes that partition invalid.
	Partitioned cpu.Set
	Groups      []Group       // all but the root, parents before children
	Ancestors   []workload.ID // groups above containers, up to the root: they must enable the cpuset controller (v2)
	Containers  []Container   // in the order of their arrival
	Requested   float64       // requests of all other containers
	Shield      string        // the group made for the tasks of the root; "": none
}

// Share is the CPUs that a container got.
type Share struct {
	workload.ID
	Own       cpu.Set // exclusive CPUs
	CPUs      cpu.Set // all that it may use
	Request   float64
	Packed    bool // other containers that reserve share its CPUs
	Unlimited bool // its quota is removed: it cannot use more than its own CPUs
	Partition bool
}

// Pin is a group that another program has bound to CPUs.
type Pin struct {
	Path string
	CPUs cpu.Set
}

// Output is the decisions of a turn.
type Output struct {
	Intents    []plan.Intent
	Shares     []Share
	Refused    []Refusal
	Unconfined []Refusal // groups that the kernel refuses to bind
	Pinned     []Pin
	Shared     cpu.Set
	Shield     bool // the tasks of the root must be moved to a group that can be confined
	Waits      bool // a group keeps its CPUs until its quota is restored
}

// State remembers from turn to turn which CPUs containers have. It depends on its inputs only. The zero State has none.
type State struct{ sets map[workload.ID]cpu.Set }

// Clone is an independent copy.
func (s *State) Clone() *State { return &State{maps.Clone(s.sets)} }

// Decide decides for all groups of a turn.
func (s *State) Decide(in Input) Output {
	var out Output
	t := s.survey(in, &out)
	wants := t.wants(in, &out)
	got := Allocate(t.machine(in), wants)
	for t.keepBack(in, got) {
		got = Allocate(t.machine(in), wants)
	}
	out.Refused = append(out.Refused, got.Refused...)
	got.Shared = got.Shared.Minus(t.others)
	out.Shared = got.Shared
	for _, c := range in.Containers {
		if own := got.Sets[c.Path]; len(own) > 0 {
			out.Shares = append(out.Shares, t.share(c, own, got))
		} else {
			t.wait(c.ID)
		}
	}
	s.sets = map[workload.ID]cpu.Set{}
	for group, sh := range t.shares {
		s.sets[sh.ID] = sh.Own
		out.Waits = out.Waits || t.at[group].NoQuota && !sh.Unlimited
	}
	out.Shield = in.Rules.Shield && !in.Inherits && len(out.Shares) > 0
	t.confine(in, &out)
	enableCPUSets(in, &out)
	t.partition(in, &out)
	return out
}
