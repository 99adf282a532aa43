package policy

import (
	"math"
	"sort"

	"plimsoll/internal/workload"
)

// NodeState is the guard's judgement of the machine, in the peer's words.
type NodeState string

// The states.
const (
	NodeIdle     NodeState = "idle"     // raises are granted, as far as the headroom goes
	NodeCooling  NodeState = "cooling"  // from 90 % of the threshold: no raise, nothing is taken back
	NodeOverload NodeState = "overload" // from the threshold: raises are taken back, the largest first
	NodeUnknown  NodeState = "unknown"  // not measured: as cooling
)

// words say what a state means for a raise or refill.
func (s NodeState) words() string {
	switch s {
	case NodeOverload:
		return "the node's use is above the threshold"
	case NodeCooling:
		return "the node's use is above 90 % of the threshold"
	case NodeUnknown:
		return "the node's use is not measured yet"
	}
	return "the node is idle"
}

// coolingRatio is where cooling begins, as a part of the threshold (the peer's sharePoolCoolingThresholdRatio).
const coolingRatio = 0.9

// Node is what is known of the machine, or of its share pool: then its CPUs without those that are reserved, and what
// runs there, the system too.
type Node struct {
	Known            bool
	CPUs             int     // online
	Used             float64 // CPUs, mean of the last moments
	Capacity         float64 // CPUs
	ThresholdPercent int64
}

// Threshold is the use from which the node counts as overloaded.
func (n Node) Threshold() float64 { return n.Capacity * float64(n.ThresholdPercent) / 100 }

// State judges the node.
func (n Node) State() NodeState {
	switch t := n.Threshold(); {
	case !n.Known:
		return NodeUnknown
	case n.Capacity <= 0 || n.Used >= t:
		return NodeOverload
	case n.Used >= coolingRatio*t:
		return NodeCooling
	}
	return NodeIdle
}

// less is the node without a part of its use.
func (n Node) less(cpus float64) Node {
	n.Used -= cpus
	return n
}

// restOf finds what starts use above their quotas, and what of the machine is not the share pool's: the CPUs that classes LSE
// and LSR reserve and what they use of them. Offline work counts as use unless the kernel verifiably keeps it behind: only then
// is its time there for the asking.
func restOf(pods []podCandidates) rest {
	var r rest
	for _, p := range pods {
		r.starts += p.handed()
		for _, u := range p.containers {
			used := u.m.history.Mean(nodeSpan)
			if u.Unlimited {
				r.reserved += float64(u.CPUs)
				r.reservedUse += math.Min(used, float64(u.CPUs))
				continue
			}
			switch u.Class {
			case workload.ClassLSE, workload.ClassLSR:
				r.reserved += u.Request
				r.reservedUse += math.Min(used, u.Request)
			case workload.ClassBE:
				if u.Deprioritized {
					r.reservedUse += used
				}
			}
		}
	}
	return r
}

// headroom is how many CPUs may be granted above limits in all so that the predicted use stays below 90 % of the
// threshold: what the node uses already, less what raised groups use above their limits, which is a part of what
// they were granted.
func (n Node) headroom(aboveLimits float64) float64 {
	return n.below(coolingRatio*n.Threshold(), aboveLimits)
}

// below is how many CPUs may be so granted that the predicted use stays below a line.
func (n Node) below(line, aboveLimits float64) float64 {
	return math.Max(0, line-math.Max(0, n.Used-aboveLimits))
}

// claim is one group's share in the headroom.
type claim struct {
	weight float64 // the reservation
	want   float64 // CPUs above its limit
}

// split divides the headroom among claims so that no claim gets more than it wants, and what is short is short in
// proportion to the weights (weighted max-min fairness). Fifty groups that are throttled in the same millisecond so
// share what is free, and do not each take it.
func split(claims []claim, free float64) []float64 {
	order := make([]int, len(claims))
	weight := 0.0
	for i, c := range claims {
		order[i] = i
		weight += c.weight
	}
	sort.SliceStable(order, func(a, b int) bool { // the most modest for its weight first
		x, y := claims[order[a]], claims[order[b]]
		return x.want*y.weight < y.want*x.weight
	})
	got := make([]float64, len(claims))
	for _, i := range order {
		c := claims[i]
		if c.weight <= 0 {
			continue
		}
		got[i] = math.Min(c.want, free*c.weight/weight)
		free -= got[i]
		weight -= c.weight
	}
	return got
}

// shed picks the raised groups to bring back to their limits so that the use falls below the threshold: the largest
// excess first. Each entry is how many CPUs a raised group uses above its limit. relief is what groups that were
// brought back a moment ago used, and the measured use still holds.
func shed(n Node, above []float64, relief float64) []int {
	order := make([]int, len(above))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return above[order[a]] > above[order[b]] })
	predicted := n.Used - relief
	var picked []int
	for _, i := range order {
		if predicted < n.Threshold() {
			break
		}
		picked = append(picked, i)
		predicted -= above[i]
	}
	return picked
}
