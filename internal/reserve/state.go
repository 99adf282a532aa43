package reserve

import (
	"maps"
	"path"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Confining: from an allocation to what each group's cpuset.cpus shall be.
//
// Those who have CPUs of their own are bound to them; one that may use more than it reserves (its limit is above its
// request) keeps the shared pool besides, unless it asks to be strict. All others are confined to the shared pool.
// On v2 an empty set inherits, and only the topmost group of each branch is written. On v1 each group holds its own.
// The groups above an exclusive one have the shared pool and the exclusive CPUs below them. The root cannot be confined; on
// v1 a shield takes its tasks into a group, which is then one of all others, but that nobody has bound it: what it had
// without us is all that the root has.
//
// A group's original CPUs are what its owner gave it. Nobody is ever given a CPU that its original does not have. A
// group that its owner has bound to fewer CPUs than its parent has is pinned: it is left alone, and its CPUs are kept
// out of what is given away. So nobody who was pinned loses a CPU.
//
// Others write the same files. Where the original is back, its owner has put it back, and ours is written again after
// a back-off. Any other value is that program's: the group is left alone as long as it stands.

// Group is a control group with CPUs, as it stands.
type Group struct {
	workload.ID
	CPUs cpu.Set // empty: it inherits
}

// Container is one that asks for CPUs of its own.
type Container struct {
	workload.ID         // in the hierarchy of the cpu controller
	Request     float64 // CPUs
	Limit       float64 // CPUs; +Inf: none
	Strict      bool
	ByNode      bool // the node asks in its place: see Want
}

// Ancestor is a group on the way from the root to a container, that may have to hand the cpuset controller on (v2).
type Ancestor struct {
	workload.ID
	SubtreeControl bool
}

// Input is what a turn decides on.
type Input struct {
	Now        time.Time
	Rules      strategy.Reserve
	Owner      string          // who else shares out the node's CPUs, so that nothing may be done; "": nobody
	Inherits   bool            // an empty set inherits (v2)
	Broken     map[string]bool // partitions that the kernel calls invalid
	Partitions bool            // the kernel has partitions below groups that are none (v2, 6.7+)
	Topology   cpu.Topology
	Isolated   cpu.Set // CPUs that no balancing reaches: isolated ones, and those in partitions, ours too
	Groups     []Group // all but the root, parents before children
	Ancestors  []Ancestor
	Containers []Container // in the order in which they came
	Requested  float64     // requests of all others
	Shield     string      // the group that the tasks of the root are in, made for that; "": none
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

// Inherited is a group that holds a value of ours because its parent did when it was made.
type Inherited struct {
	ID             workload.ID
	Held, Baseline cpu.Set
}

// Output is what a turn decided.
type Output struct {
	Changes    []plan.Change
	Inherited  []Inherited   // to be booked before the changes are carried out
	Foreign    []workload.ID // no longer ours
	Shares     []Share
	Refused    []Refusal
	Unconfined []Refusal // groups that the kernel does not let be bound
	Pinned     []Pin
	Shared     cpu.Set
	Shield     bool  // the tasks of the root are to be in a group that can be confined
	Resets     []Pin // whose owner has put its CPUs back; ours are written again after a while
}

// State is what is remembered from turn to turn. It depends on its inputs only.
type State struct {
	groups          map[workload.ID]*memory
	sets            map[workload.ID]cpu.Set    // what containers have
	subtreeControls map[workload.ID]bool       // groups that hand the controller on because of us
	partitioned     map[workload.ID]*partition // files of partitions
	online          cpu.Set
}

// memory is what is remembered of one group.
type memory struct {
	original cpu.Set
	lost     cpu.Set // of the original, that went offline (v1)
	wrote    cpu.Set // stands in the file, where ours
	ours     bool
	foreign  bool
	retry    backoff
	problem  string // why the last write was refused
}

// NewState remembers nothing.
func NewState() *State {
	return &State{groups: map[workload.ID]*memory{}, sets: map[workload.ID]cpu.Set{}, subtreeControls: map[workload.ID]bool{},
		partitioned: map[workload.ID]*partition{}}
}

// Clone is a state of its own that remembers the same.
func (s *State) Clone() *State {
	c := &State{groups: map[workload.ID]*memory{}, sets: maps.Clone(s.sets), subtreeControls: maps.Clone(s.subtreeControls),
		partitioned: map[workload.ID]*partition{}, online: s.online}
	for id, m := range s.groups {
		one := *m
		c.groups[id] = &one
	}
	for id, f := range s.partitioned {
		one := *f
		c.partitioned[id] = &one
	}
	return c
}

// Idle says whether nothing of ours stands anywhere.
func (s *State) Idle() bool {
	for _, m := range s.groups {
		if m.ours {
			return false
		}
	}
	return len(s.subtreeControls) == 0 && !s.fencing()
}

// Decide takes a turn.
func (s *State) Decide(in Input) Output {
	var out Output
	t := s.observe(in, &out)
	wants := t.wants(in, &out)
	got := Allocate(t.machine(in), wants)
	out.Refused = append(out.Refused, got.Refused...)
	out.Shared = got.Shared
	s.sets = map[workload.ID]cpu.Set{}
	for _, c := range in.Containers {
		if own := got.Sets[c.Path]; len(own) > 0 {
			s.sets[c.ID] = own
			out.Shares = append(out.Shares, t.share(c, own, got))
		}
	}
	out.Shield = in.Rules.Shield && !in.Inherits && len(out.Shares) > 0
	t.confine(in, &out)
	s.handOn(in, &out)
	s.partition(in, t, &out)
	s.online = in.Topology.Set()
	return out
}

// Learn books what became of the changes.
func (s *State) Learn(now time.Time, results []plan.Result) {
	for _, r := range results {
		s.learnPartition(now, r)
		switch done := r.Outcome == plan.Applied; {
		case r.Change.Knob == plan.SubtreeControl && done:
			s.subtreeControls[r.Change.Cgroup] = true
			if r.Change.Restore {
				delete(s.subtreeControls, r.Change.Cgroup)
			}
		case r.Change.Knob == plan.CPUs:
			s.learn(now, r)
		}
	}
}

func (s *State) learn(now time.Time, r plan.Result) {
	m := s.groups[r.Change.Cgroup]
	if m == nil {
		return
	}
	switch r.Outcome {
	case plan.Applied, plan.Clamped:
		if set, err := cpu.ParseSet(string(r.InForce)); err == nil {
			m.wrote, m.problem = set, ""
			m.settle(set, r.Change.Restore)
		}
	case plan.Skipped:
		if set, err := cpu.ParseSet(string(r.InForce)); err == nil && r.Change.Restore {
			m.settle(set, true)
		}
	case plan.Refused:
		m.retry.hit(now)
		m.problem = r.Err
	}
}

// settle books that a value stands in the file, ours or what is left of the original.
func (m *memory) settle(set cpu.Set, back bool) {
	m.ours = !back
	if back && len(set) > 0 {
		m.lost = m.original.Minus(set)
	}
}

// above lists the groups above a path, without the root.
func above(group string) []string {
	var list []string
	for at := path.Dir(group); at != "/" && at != "."; at = path.Dir(at) {
		list = append(list, at)
	}
	return list
}
