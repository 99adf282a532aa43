package reserve

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// turn is the tree of groups during a turn.
type turn struct {
	s      *State
	online cpu.Set
	nodes  []*node
	at     map[string]*node
	shares map[string]Share
	stays  float64 // requests of containers that the node's rule covers, and that cannot have exclusive CPUs
	spare  cpu.Set // kept for the other groups in branches that are bound as a whole
	others cpu.Set // in partitions of other programs
	kept   cpu.Set // of containers that lost them, and still lack their quota
}

// node is one group during a turn.
type node struct {
	Group
	parent    *node   // nil: the root
	mine      bool    // a container that requests exclusive CPUs
	ancestor  bool    // above such a container
	pinned    bool    // its owner has bound it
	beneath   bool    // below a pinned group
	effective cpu.Set // the CPUs that it had without us
	home      cpu.Set // the value of its file while no container has exclusive CPUs
}

func (n *node) foreign() bool { return n.Blocked == plan.Foreign }

// survey finds the pinned groups and the bound branches.
func (s *State) survey(in Input, out *Output) *turn {
	t := &turn{s: s, online: in.Topology.Set(), at: map[string]*node{}, shares: map[string]Share{}}
	mine, ancestor := map[string]bool{}, map[string]bool{}
	for _, c := range in.Containers {
		mine[c.Path] = true
		for p := range workload.Above(c.Path) {
			ancestor[p] = true
		}
	}
	t.others = in.Partitioned.Minus(s.exclusive(in.Groups))
	var bound []cpu.Set
	for _, g := range in.Groups {
		n := &node{Group: g, parent: t.at[path.Dir(g.Path)], mine: mine[g.Path], ancestor: ancestor[g.Path]}
		if n.Path == in.Shield { // a CPU may have been offline when the shield was made
			n.Baseline, n.Lost = t.online, nil
		}
		n.trace(t, in.Inherits)
		if n.pinned {
			out.Pinned = append(out.Pinned, Pin{n.Path, n.CPUs})
		}
		if n.ancestor && !t.online.Minus(t.others).Within(n.effective) {
			bound = append(bound, n.effective)
		}
		t.nodes, t.at[g.Path] = append(t.nodes, n), n
	}
	t.spareIn(bound)
	return t
}

// trace finds the CPUs that a group had without us, and whether its owner bound it to them.
func (n *node) trace(t *turn, inherits bool) {
	outer := t.online
	if n.parent != nil {
		outer = n.parent.effective
		n.beneath = n.parent.pinned || n.parent.beneath
	}
	n.home = n.Baseline
	if !inherits { // CPUs that the kernel removed from a group above cannot be given to this group
		n.home = n.Baseline.Minus(n.Lost).And(outer)
	}
	n.effective = n.home.And(outer)
	if inherits && len(n.effective) == 0 { // kernel/cgroup/cpuset.c, update_cpumasks_hier: an empty set inherits
		n.effective = outer
	}
	// A list without the CPUs of others' partitions binds it to nothing: apply.Writer.free writes it for an empty one.
	bound := len(n.Baseline) > 0 && !outer.Minus(t.others).Within(n.Baseline)
	n.pinned = (bound || n.foreign()) && !n.ancestor && !n.beneath
}

// spareIn keeps a CPU in each branch that is narrower than the machine, if possible one that no container has: the
// other groups in the branch have no other CPUs.
func (t *turn) spareIn(bound []cpu.Set) {
	slices.SortStableFunc(bound, func(a, b cpu.Set) int { return len(a) - len(b) })
	for _, branch := range bound {
		if len(branch.And(t.spare)) > 0 {
			continue
		}
		left := branch.Minus(t.others)
		for _, own := range t.s.sets {
			left = left.Minus(own)
		}
		if len(left) == 0 {
			left = branch
		}
		t.spare = t.spare.Union(left[:min(1, len(left))])
	}
}

// wants lists the wants of containers, and refuses containers whose cpuset cannot be written.
func (t *turn) wants(in Input, out *Output) []Want {
	var list []Want
	requests := map[workload.ID]bool{}
	for _, c := range in.Containers {
		if in.Rules.Policy == strategy.ReserveNone {
			break
		}
		if why := t.unable(in, c); why != "" {
			out.Refused = append(out.Refused, Refusal{c.Path, why})
			if c.ByNode {
				t.stays += c.Request
			}
			continue
		}
		requests[c.ID] = true
		n := t.at[c.Path]
		w := Want{Name: c.Path, CPUs: c.Request, Has: t.s.sets[c.ID], ByNode: c.ByNode}
		if !t.online.Minus(t.others).Within(n.effective) {
			w.Within = n.effective.Minus(t.spare)
		}
		list = append(list, w)
	}
	for id := range t.s.sets {
		if !requests[id] {
			t.wait(id)
		}
	}
	return list
}

// wait lets a container that loses its exclusive CPUs keep them until its quota is restored.
func (t *turn) wait(id workload.ID) {
	if n, own := t.at[id.Path], t.s.sets[id]; n != nil && n.NoQuota && len(own) > 0 {
		t.shares[id.Path] = Share{ID: id, Own: own, CPUs: n.CPUs}
	}
}

// unable says why a container cannot get exclusive CPUs, however many are free.
func (t *turn) unable(in Input, c Container) string {
	n := t.at[c.Path]
	switch {
	case in.Owner != "":
		return in.Owner + ": left alone"
	case n == nil && in.Inherits:
		return "the cpuset controller is not enabled for it (cgroup.subtree_control of its parents)"
	case n == nil:
		return "it is not in the cpuset hierarchy; " +
			"hint: make a group of the same path there, give it CPUs and move its processes"
	case n.foreign():
		return fmt.Sprintf("another program has set its CPUs to %s: left alone", n.CPUs)
	case n.pinned:
		return fmt.Sprintf("its owner has bound it to %s: left alone", n.Baseline)
	case n.beneath:
		return "its owner has bound a group above it: left alone"
	case n.Blocked != plan.Free && n.Problem != "":
		return n.Problem
	case n.Blocked != plan.Free:
		return "its owner has restored its CPUs: retried after a while"
	}
	for p := range workload.Above(c.Path) {
		if m := t.at[p]; m != nil && m.mine {
			return "it is inside of " + p + ", which requests CPUs too"
		}
	}
	return ""
}

// machine is the machine to allocate from.
func (t *turn) machine(in Input) Machine {
	kept := in.Rules.CPUs.Union(t.spare).Union(t.kept)
	for _, n := range t.nodes {
		if n.pinned {
			kept = kept.Union(n.effective)
		}
	}
	for _, waits := range t.shares { // only waiting containers have shares so far
		kept = kept.Union(waits.CPUs)
	}
	return Machine{
		Topology: in.Topology, Kept: kept, Isolated: in.Isolated.Minus(t.s.exclusive(in.Groups)),
		MinShared: max(1, in.Rules.MinShared), Requested: in.Requested + t.stays,
	}
}

// keepBack keeps the CPUs of containers that lose them in this turn, and still lack their quota. It says whether it has
// found any: then they must not be allocated to other containers.
func (t *turn) keepBack(in Input, got Allocation) (found bool) {
	for _, c := range in.Containers {
		n, own := t.at[c.Path], got.Sets[c.Path]
		if len(t.s.sets[c.ID]) == 0 || n == nil || !n.NoQuota || len(own) > 0 && c.unlimited(got) {
			continue
		}
		lost := n.CPUs.Minus(own).Minus(t.kept)
		t.kept, found = t.kept.Union(lost), found || len(lost) > 0
	}
	return found
}

// usesPool says whether a container may use more than its exclusive CPUs.
func (c Container) usesPool() bool {
	const rounding = 1e-3
	return !c.Strict && c.Limit > c.Request+rounding
}

// unlimited says whether a container with exclusive CPUs needs no quota.
func (c Container) unlimited(got Allocation) bool { return !c.usesPool() && !got.Packed[c.Path] }

// exclusive is the set of CPUs that containers have. Those of their partitions are isolated because of us.
func (s *State) exclusive(groups []Group) (sum cpu.Set) {
	for _, own := range s.sets {
		sum = sum.Union(own)
	}
	for _, g := range groups {
		sum = sum.Union(g.Exclusive)
	}
	return sum
}

// share is the share of a container. Where it may use more than its exclusive CPUs, it gets them once its quota is
// restored.
func (t *turn) share(c Container, own cpu.Set, got Allocation) Share {
	n := t.at[c.Path]
	sh := Share{ID: c.ID, Own: own, CPUs: own, Request: c.Request, Packed: got.Packed[c.Path],
		Unlimited: c.unlimited(got)}
	if c.usesPool() {
		sh.CPUs = own.Union(got.Shared.And(n.effective))
	}
	if n.NoQuota && !sh.Unlimited && len(n.CPUs) > 0 {
		sh.CPUs = n.CPUs
	}
	t.shares[c.Path] = sh
	return sh
}

// confine makes the intents for the CPUs of all groups.
func (t *turn) confine(in Input, out *Output) {
	for _, n := range t.nodes {
		to, why := t.target(in, n, out.Shared)
		if len(to) == 0 && !in.Inherits {
			to = n.CPUs
		}
		if to.Equal(n.home) && n.Path != in.Shield {
			continue
		}
		if n.Problem != "" && !n.mine {
			out.Unconfined = append(out.Unconfined, Refusal{n.Path, n.Problem})
		}
		out.Intents = append(out.Intents, intent(n.ID, plan.CPUs, to.String(), why))
	}
}

func intent(id workload.ID, knob plan.Knob, value, why string) plan.Intent {
	return plan.Intent{Key: plan.Key{ID: id, Knob: knob}, Value: plan.Value(value), Why: why}
}

// target is the value for a group's file, and its reason.
func (t *turn) target(in Input, n *node, shared cpu.Set) (to cpu.Set, why string) {
	container := n
	for container != nil && len(t.shares[container.Path].Own) == 0 {
		container = container.parent
	}
	switch {
	case n.pinned || n.beneath || n.foreign() || len(t.shares) == 0:
		return n.home, ""
	case container == n:
		return t.shares[n.Path].CPUs, "exclusive CPUs: " + t.shares[n.Path].Own.String()
	case container != nil && in.Inherits:
		return n.home, ""
	case container != nil:
		return t.shares[container.Path].CPUs.And(n.home), "in a container with exclusive CPUs"
	case n.ancestor:
		return t.narrow(n, shared.Union(t.below(n.Path))), "the share pool and the CPUs of containers in it"
	case in.Inherits && n.parent != nil && !n.parent.ancestor:
		return n.home, ""
	}
	return t.narrow(n, shared), "confined to the share pool"
}

// narrow cuts the group's CPUs to a set; where that set contains all of them that are not in another's partition, it
// returns home.
func (t *turn) narrow(n *node, to cpu.Set) cpu.Set {
	if n.effective.Within(to.Union(t.others)) {
		return n.home
	}
	return to.And(n.effective)
}

// below is the set of CPUs of the containers below a group.
func (t *turn) below(group string) cpu.Set {
	var sum cpu.Set
	for p, sh := range t.shares {
		if strings.HasPrefix(p, group+"/") {
			sum = sum.Union(sh.CPUs)
		}
	}
	return sum
}

// enableCPUSets makes the intents that enable the cpuset controller for the children of groups above containers.
func enableCPUSets(in Input, out *Output) {
	if in.Owner != "" || in.Rules.Policy == strategy.ReserveNone {
		return
	}
	for _, id := range in.Ancestors {
		out.Intents = append(out.Intents, intent(id, plan.SubtreeControl, "1", "a group below it gets exclusive CPUs"))
	}
}
