package strategy

// Node is the whole answer for a node: the strategy that its containers start from, and what applies to the node only.
type Node struct {
	Strategy
	// Colocation is what online and offline classes get.
	Colocation Colocation
	// Extra is how many CPUs above limits are handed out at most.
	Extra ExtraCores
}

// DefaultNode is the node where nothing is configured.
func DefaultNode() Node { return Node{Strategy: Default()} }

// NodePatch is a Node with holes. Extra is not in it: its bounds have holes themselves (ExtraCores.Over).
type NodePatch struct {
	Patch
	Colocation ColocationPatch
}

// Over lays the patch over n, field by field.
func (p NodePatch) Over(n Node) Node {
	n.Strategy = p.Patch.Over(n.Strategy)
	n.Colocation = p.Colocation.Over(n.Colocation)
	return n
}
