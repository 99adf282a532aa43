package reserve

import (
	"fmt"
	"path"
	"strings"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// turn is the tree of groups during a turn.
type turn struct {
	s       *State
	online  cpu.Set
	nodes   []*node
	at      map[string]*node
	shares  map[string]Share
	nowhere bool    // nothing may be reserved
	stays   float64 // requests of those for whom the node asks, and who cannot have CPUs of their own
}

// node is one group during a turn.
type node struct {
	Group
	*memory
	parent    *node   // nil: the root
	mine      bool    // a container that asks
	ancestor  bool    // above one that asks
	pinned    bool    // its owner has bound it
	beneath   bool    // below one that is pinned
	effective cpu.Set // the CPUs that it had without us
	home      cpu.Set // what its file is to hold when nobody has CPUs of its own
}

// observe compares what stands in the files with what is known, and finds out who is pinned.
func (s *State) observe(in Input, out *Output) *turn {
	t := &turn{s: s, online: in.Topology.Set(), at: map[string]*node{}, shares: map[string]Share{},
		nowhere: in.Owner != "" || in.Rules.Policy == strategy.ReserveNone}
	mine, ancestor := map[string]bool{}, map[string]bool{}
	for _, c := range in.Containers {
		mine[c.Path] = true
		for _, p := range above(c.Path) {
			ancestor[p] = true
		}
	}
	seen := map[workload.ID]*memory{}
	for _, g := range in.Groups {
		n := &node{Group: g, parent: t.at[path.Dir(g.Path)], mine: mine[g.Path], ancestor: ancestor[g.Path]}
		n.memory = s.groups[g.ID]
		if n.memory == nil {
			n.memory = s.first(in, n, out)
		} else {
			s.again(in, n, out)
		}
		if n.Path == in.Shield { // it may have been made while a CPU was offline
			n.original, n.lost = t.online, nil
		}
		n.trace(t, in.Inherits)
		if n.pinned {
			out.Pinned = append(out.Pinned, Pin{n.Path, n.CPUs})
		}
		seen[g.ID] = n.memory
		t.nodes, t.at[g.Path] = append(t.nodes, n), n
	}
	s.groups = seen
	return t
}

// first takes note of a group. On v1 one that was made while its parent held CPUs of ours has copied them.
func (s *State) first(in Input, n *node, out *Output) *memory {
	m := &memory{original: n.CPUs}
	if p := n.parent; !in.Inherits && p != nil && p.ours && n.CPUs.Equal(p.wrote) {
		m.original, m.wrote, m.ours = p.original, n.CPUs, true
		out.Inherited = append(out.Inherited, Inherited{n.ID, n.CPUs, p.original})
	}
	return m
}

// again finds out who has written since the last turn.
func (s *State) again(in Input, n *node, out *Output) {
	m := n.memory
	switch {
	case m.ours && n.CPUs.Equal(m.wrote), !m.ours && n.CPUs.Equal(m.original.Minus(m.lost)):
	case m.ours && shrunk(in, n.CPUs, m.wrote):
		m.wrote = n.CPUs
	case !m.ours && shrunk(in, n.CPUs, m.original):
		m.lost = m.original.Minus(n.CPUs)
	case m.ours && n.CPUs.Equal(m.original):
		m.ours = false
		m.retry.hit(in.Now)
		out.Resets = append(out.Resets, Pin{n.Path, n.CPUs})
	case m.ours:
		m.ours, m.foreign, m.original = false, true, n.CPUs
		out.Foreign = append(out.Foreign, n.ID)
	default:
		m.original, m.lost, m.foreign = n.CPUs, nil, false
	}
}

// shrunk says whether the kernel took out CPUs that went offline, as it does on v1, for good. It may have taken all: then
// it has moved the processes to the group above (kernel/cgroup/cpuset.c, hotplug_update_tasks_legacy).
func shrunk(in Input, now, before cpu.Set) bool {
	return !in.Inherits && len(before) > 0 && now.Within(before) && len(before.Minus(now).And(in.Topology.Set())) == 0
}

// trace finds the CPUs that a group had without us, and whether that is its owner's doing.
func (n *node) trace(t *turn, inherits bool) {
	outer := t.online
	if n.parent != nil {
		outer = n.parent.effective
		n.beneath = n.parent.pinned || n.parent.beneath
	}
	n.home = n.original
	if !inherits { // what the kernel took from a group above, it can be given no more
		n.home = n.original.Minus(n.lost).And(outer)
	}
	n.effective = n.home.And(outer)
	if inherits && len(n.effective) == 0 { // kernel/cgroup/cpuset.c, update_cpumasks_hier: what is empty inherits
		n.effective = outer
	}
	bound := len(n.original) > 0 && !outer.Within(n.original)
	n.pinned = (bound || n.foreign) && !n.ancestor && !n.beneath
}

// wants says who asks for what, and refuses those for whom no allocation could be carried out.
func (t *turn) wants(in Input, out *Output) []Want {
	var list []Want
	if in.Rules.Policy == strategy.ReserveNone {
		return nil
	}
	for _, c := range in.Containers {
		if why := t.unable(in, c); why != "" {
			out.Refused = append(out.Refused, Refusal{c.Path, why})
			if c.ByNode {
				t.stays += c.Request
			}
			continue
		}
		n := t.at[c.Path]
		w := Want{Name: c.Path, CPUs: c.Request, Has: t.s.sets[c.ID], ByNode: c.ByNode}
		if !t.online.Within(n.effective) {
			w.Within = t.s.spareOne(n.effective)
		}
		list = append(list, w)
	}
	return list
}

// spareOne are the CPUs of a branch that is narrower than the machine but one: whoever else is in it has no other CPUs.
func (s *State) spareOne(branch cpu.Set) cpu.Set {
	left := branch
	for _, own := range s.sets {
		left = left.Minus(own)
	}
	if len(left) == 0 {
		left = branch
	}
	return branch.Minus(left[:min(1, len(left))])
}

// unable says why nothing can be done for a container, whatever is free.
func (t *turn) unable(in Input, c Container) string {
	n := t.at[c.Path]
	switch {
	case in.Owner != "":
		return in.Owner + ": left alone"
	case n == nil && in.Inherits:
		return "the cpuset controller is not handed on to it"
	case n == nil:
		return "it is not in the cpuset hierarchy; hint: make a group of the same path there, give it CPUs and move its processes"
	case n.foreign:
		return fmt.Sprintf("another program has set its CPUs to %s: left alone", n.CPUs)
	case n.pinned:
		return fmt.Sprintf("its owner has bound it to %s: left alone", n.original)
	case n.beneath:
		return "its owner has bound a group above it: left alone"
	case n.problem != "" && !n.retry.Ready(in.Now):
		return n.problem
	case !n.ours && !n.retry.Ready(in.Now):
		return "its owner has put its CPUs back: tried again after a while"
	}
	for _, p := range above(c.Path) {
		if m := t.at[p]; m != nil && m.mine {
			return "it is inside of " + p + ", which asks for CPUs too"
		}
	}
	return ""
}

// machine is what there is to share out.
func (t *turn) machine(in Input) Machine {
	kept := in.Rules.CPUs
	for _, n := range t.nodes {
		if n.pinned {
			kept = kept.Union(n.effective)
		}
	}
	return Machine{Topology: in.Topology, Kept: kept, Isolated: in.Isolated.Minus(t.s.held()), Floor: max(1, in.Rules.Floor), Requested: in.Requested + t.stays}
}

// held are the CPUs that containers have: those of their partitions are isolated because of us.
func (s *State) held() (sum cpu.Set) {
	for _, own := range s.sets {
		sum = sum.Union(own)
	}
	for _, f := range s.partitioned {
		sum = sum.Union(f.exclusive)
	}
	return sum
}

// share is what a container gets.
func (t *turn) share(c Container, own cpu.Set, got Allocation) Share {
	const rounding = 1e-3
	sh := Share{ID: c.ID, Own: own, CPUs: own, Request: c.Request, Strict: c.Strict, Packed: got.Packed[c.Path]}
	if !c.Strict && c.Limit > c.Request+rounding {
		sh.CPUs = own.Union(got.Shared.And(t.at[c.Path].effective))
	} else {
		sh.Unlimited = !sh.Packed
	}
	t.shares[c.Path] = sh
	return sh
}

// confine makes the changes.
func (t *turn) confine(in Input, out *Output) {
	for _, n := range t.nodes {
		to, why := t.target(in, n, out.Shared)
		if to.Equal(n.CPUs) && !(n.ours && to.Equal(n.home)) || !n.ours && to.Equal(n.home) || len(to) == 0 && !in.Inherits {
			continue
		}
		back := to.Equal(n.home)
		if n.problem != "" && !n.mine {
			out.Unconfined = append(out.Unconfined, Refusal{n.Path, n.problem})
		}
		if !n.retry.Ready(in.Now) && (!back || n.problem != "") {
			continue
		}
		out.Changes = append(out.Changes, n.steps(in, to, why, back)...)
	}
}

// steps is one change; on v1 one by way of all CPUs of before and after where some are added and some taken, so that
// neither parents nor children are in the way.
func (n *node) steps(in Input, to cpu.Set, why string, back bool) []plan.Change {
	from := n.CPUs
	change := func(from, to cpu.Set, back bool) plan.Change {
		return plan.Change{Cgroup: n.ID, Knob: plan.CPUs, From: plan.Value(from.String()), To: plan.Value(to.String()), Why: why, Restore: back}
	}
	live := from.And(in.Topology.Set()) // the kernel, that is about to take the others out, refuses them
	if in.Inherits || live.Within(to) || to.Within(from) {
		return []plan.Change{change(from, to, back)}
	}
	both := live.Union(to)
	return []plan.Change{change(from, both, false), change(both, to, back)}
}

// target is what a group shall hold.
func (t *turn) target(in Input, n *node, shared cpu.Set) (to cpu.Set, why string) {
	const back = "nobody has CPUs of its own here any more"
	switch {
	case n.pinned || n.beneath || n.foreign:
		if n.ours {
			return n.home, back
		}
		return n.CPUs, ""
	case t.nowhere || len(t.shares) == 0:
		return n.home, back
	case n.ancestor && len(t.shares[n.Path].Own) == 0 && !t.inside(n):
		return n.narrow(shared.Union(t.below(n.Path))), "room for the containers in it"
	}
	for at := n; at != nil; at = at.parent {
		sh, ok := t.shares[at.Path]
		switch {
		case ok && at == n:
			return sh.CPUs, "CPUs of its own: " + sh.Own.String()
		case ok && in.Inherits:
			return n.home, back
		case ok:
			return sh.CPUs.And(n.home), "in a container with CPUs of its own"
		}
	}
	if in.Inherits && n.parent != nil && !n.parent.ancestor {
		return n.home, back
	}
	return n.narrow(shared), "confined to the shared pool"
}

// inside says whether a group is in a container with CPUs of its own.
func (t *turn) inside(n *node) bool {
	for at := n.parent; at != nil; at = at.parent {
		if _, ok := t.shares[at.Path]; ok {
			return true
		}
	}
	return false
}

// narrow is what of some CPUs the group may have; its original where it may have all that it had.
func (n *node) narrow(to cpu.Set) cpu.Set {
	if n.effective.Within(to) {
		return n.home
	}
	return to.And(n.effective)
}

// below are the CPUs of the containers below a group.
func (t *turn) below(group string) cpu.Set {
	var sum cpu.Set
	for p, sh := range t.shares {
		if strings.HasPrefix(p, group+"/") {
			sum = sum.Union(sh.CPUs)
		}
	}
	return sum
}

// handOn has the groups on the way hand the cpuset controller on, and takes that back when nobody needs it.
func (s *State) handOn(in Input, out *Output) {
	needed := map[workload.ID]bool{}
	if in.Owner == "" && in.Rules.Policy != strategy.ReserveNone {
		for _, w := range in.Ancestors {
			needed[w.ID] = true
			if !w.SubtreeControl {
				out.Changes = append(out.Changes, plan.Change{Cgroup: w.ID, Knob: plan.SubtreeControl, From: "0", To: "1",
					Why: "a group below it is to have CPUs of its own"})
			}
		}
	}
	for id := range s.subtreeControls {
		if !needed[id] {
			out.Changes = append(out.Changes, plan.Change{Cgroup: id, Knob: plan.SubtreeControl, From: "1", To: "0", Restore: true,
				Why: "nobody below it has CPUs of its own"})
		}
	}
	plan.Order(out.Changes)
}
