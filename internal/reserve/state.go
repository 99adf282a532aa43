package reserve

import (
	"maps"
	"path"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Confining: from an allocation to what each group's cpuset.cpus is to hold.
//
// A container with CPUs of its own is bound to them; one that may use more than it reserves (its limit is above its
// request) keeps the shared pool besides, unless it asks to be strict. All other groups are confined to the shared pool.
// On v2 an empty set inherits, and only the topmost group of each branch is written. On v1 each group holds its own.
// The groups above an exclusive one have the shared pool and the exclusive CPUs below them. The root cannot be confined; on
// v1 a shield takes its tasks into a group, which is then an ordinary one, but that nobody has bound it: its baseline is all
// that the root has.
//
// A group's baseline is what its owner gave it. No group is ever given a CPU that its baseline does not have. A group that
// its owner has bound to fewer CPUs than its parent has is pinned: it is left alone, and its CPUs are kept out of what is
// given away. So no pinned group loses a CPU. A branch that is bound as a whole keeps a CPU for the others in it.
//
// What a file is to hold is an intent. Whose value it holds, and what is put back, is the ledger's to know: a group that
// another program has bound is blocked as foreign here, and pinned.

// Group is a control group with CPUs.
type Group struct {
	workload.ID
	CPUs     cpu.Set      // what its file holds; empty: it inherits
	Baseline cpu.Set      // what its owner gave it
	Lost     cpu.Set      // of the baseline, what the kernel has taken out (v1)
	Blocked  plan.Blocked // why the file may not be written now
	Problem  string       // why the last write was refused
	Lifted   bool         // its quota is lifted: its CPUs are not taken away before that is back
	// What stands of a partition because of us, and why none may be made now.
	Exclusive    cpu.Set
	Partition    bool
	Unpartitions plan.Blocked
}

// Container is one that asks for CPUs of its own.
type Container struct {
	workload.ID         // in the hierarchy of the cpu controller
	Request     float64 // CPUs
	Limit       float64 // CPUs; +Inf: none
	Strict      bool
	ByNode      bool // the node asks in its place: see Want
}

// Input is what a turn decides on.
type Input struct {
	Rules      strategy.Reserve
	Owner      string // who else shares out the node's CPUs, so that nothing may be done; "": nobody
	Inherits   bool   // an empty set inherits (v2)
	Partitions bool   // the kernel has partitions below groups that are none (v2, 6.7+)
	Topology   cpu.Topology
	Isolated   cpu.Set       // CPUs that no balancing reaches: isolated ones, and those in partitions, ours too
	Groups     []Group       // all but the root, parents before children
	Ancestors  []workload.ID // above containers, up to the root: they have to hand the cpuset controller on (v2)
	Containers []Container   // in the order in which they came
	Requested  float64       // requests of all others
	Shield     string        // the group that the tasks of the root are in, made for that; "": none
}

// Share is what a container got.
type Share struct {
	workload.ID
	Own       cpu.Set // exclusive CPUs
	CPUs      cpu.Set // all that it may use
	Request   float64
	Strict    bool
	Packed    bool // others that reserve are on its CPUs
	Unlimited bool // its quota is to be taken away: it cannot use more than its own CPUs
	Partition bool
}

// Pin is a group that another program has bound to CPUs.
type Pin struct {
	Path string
	CPUs cpu.Set
}

// Output is what a turn decided.
type Output struct {
	Intents    []plan.Intent
	Shares     []Share
	Refused    []Refusal
	Unconfined []Refusal // groups that the kernel does not let be bound
	Pinned     []Pin
	Shared     cpu.Set
	Shield     bool // the tasks of the root are to be in a group that can be confined
	Lifted     bool // some group's quota is to be back before its CPUs are taken away
}

// State is what is remembered from turn to turn: which CPUs containers have. It depends on its inputs only.
type State struct{ sets map[workload.ID]cpu.Set }

// NewState remembers nothing.
func NewState() *State { return &State{map[workload.ID]cpu.Set{}} }

// Clone is a state of its own that remembers the same.
func (s *State) Clone() *State { return &State{maps.Clone(s.sets)} }

// Decide takes a turn.
func (s *State) Decide(in Input) Output {
	var out Output
	t := s.survey(in, &out)
	wants := t.wants(in, &out)
	got := Allocate(t.machine(in), wants)
	out.Refused = append(out.Refused, got.Refused...)
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
		out.Lifted = out.Lifted || t.at[group].Lifted && !sh.Unlimited
	}
	out.Shield = in.Rules.Shield && !in.Inherits && len(out.Shares) > 0
	t.confine(in, &out)
	t.handOn(in, &out)
	t.partition(in, &out)
	return out
}

// above lists the groups above a path, without the root.
func above(group string) []string {
	var list []string
	for at := path.Dir(group); at != "/" && at != "."; at = path.Dir(at) {
		list = append(list, at)
	}
	return list
}
