package strategy

import "cmp"

// Bound is the most of an amount of CPU; the zero one bounds nothing.
type Bound struct {
	Set  bool
	CPUs float64
}

// ExtraCores are the most CPUs above limits: what raised quotas and refills may hand out at a time, all together, in
// one pod, in the pods of one namespace on a node, and on a node. They bind whoever asked for them.
type ExtraCores struct{ PerPod, PerNamespace, PerNode Bound }

// Bounded says whether any bound is set.
func (e ExtraCores) Bounded() bool { return e != (ExtraCores{}) }

// Over lays the bounds that e sets over others.
func (e ExtraCores) Over(o ExtraCores) ExtraCores {
	return ExtraCores{cmp.Or(e.PerPod, o.PerPod), cmp.Or(e.PerNamespace, o.PerNamespace), cmp.Or(e.PerNode, o.PerNode)}
}
