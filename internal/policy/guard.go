package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/internal/workload"
)

// NodeState is the guard's judgement of the machine, in the words of Koordinator.
type NodeState string

// The states.
const (
	NodeIdle     NodeState = "idle"     // raises are granted within the headroom
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

// coolingRatio is where cooling begins, as a part of the threshold (Koordinator: sharePoolCoolingThresholdRatio).
const coolingRatio = 0.9

// Node is the use and capacity of the machine, or of its share pool: the CPUs that are not reserved, and the use of all
// tasks there, including the system's.
type Node struct {
	Known            bool
	CPUs             int     // online
	Used             float64 // CPUs, mean of the last moments
	Capacity         float64 // CPUs
	ThresholdPercent int64
	Busy             time.Duration // CPU time of the whole machine, so far
	BusyAt           time.Time     // when that was read; zero: it was not
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

// poolOf adds up the use of starts above their quotas, and the part of the machine outside the share pool: the CPUs
// that classes LSE and LSR reserve, and their use of them. Offline work counts as use unless the kernel verifiably
// deprioritizes it: only then is its CPU time available to others.
func poolOf(pods []podCandidates) pool {
	var r pool
	for _, p := range pods {
		r.starts += p.startUse()
		for _, u := range p.containers {
			used := u.m.history.Mean(NodeSpan)
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

// headroom is how many CPUs may be granted above limits in total so that the predicted use stays below 90 % of the
// threshold. The use of raised groups above their limits is subtracted from the node's use, because it is part of the
// grants.
func (n Node) headroom(aboveLimits float64) float64 {
	return n.below(coolingRatio*n.Threshold(), aboveLimits)
}

// below is headroom for another line than 90 % of the threshold.
func (n Node) below(line, aboveLimits float64) float64 {
	return math.Max(0, line-math.Max(0, n.Used-aboveLimits))
}

// shed picks the raised groups to bring back to their limits so that the use falls below the threshold: of the tenant
// whose groups use most above their limits, the one with the largest excess, and so on. So many small raises of one
// tenant do not outlast the only one of another. relief is what groups that were brought back a moment ago used, and
// the measured use still holds.
func shed(n Node, raised []excess, relief float64) []excess {
	of := map[string]float64{}
	for _, e := range raised {
		of[e.tenant] += e.above
	}
	most := func(a, b excess) int {
		return cmp.Or(cmp.Compare(of[b.tenant], of[a.tenant]), cmp.Compare(b.above, a.above))
	}
	var picked []excess
	left := slices.Clone(raised)
	for predicted := n.Used - relief; predicted >= n.Threshold() && len(left) > 0; {
		next := slices.MinFunc(left, most)
		left = slices.DeleteFunc(left, func(e excess) bool { return e.u == next.u })
		picked = append(picked, next)
		predicted -= next.above
		of[next.tenant] -= next.above
	}
	return picked
}

// excess is how many CPUs a raised candidate uses above its limit.
type excess struct {
	u      *candidate
	tenant string
	above  float64
}
