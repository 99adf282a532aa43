package workload

import "plimsoll/internal/strategy"

// Exclusive says whether a container is to have exclusive CPUs, which nobody else may use.
type Exclusive string

// The answers.
const (
	ExclusiveByClass Exclusive = ""       // not said: LSE and LSR are, others where the node's reserve says so for all
	ExclusiveNo      Exclusive = "false"  // it is not
	ExclusiveYes     Exclusive = "true"   // one with a limit above its request keeps the share pool besides
	ExclusiveStrict  Exclusive = "strict" // its own CPUs and no others
)

// Asks is what the container asks for on a node. byNode says that the node asks in its place (reserve.exclusive):
// neither its own configuration nor its class does. Offline work and the node's own are not asked for.
func (c Container) Asks(node strategy.Reserve) (asks Exclusive, byNode bool) {
	switch {
	case c.Exclusive != ExclusiveByClass:
		return c.Exclusive, false
	case c.Class == ClassLSE, c.Class == ClassLSR:
		return ExclusiveYes, false
	case !node.All, c.Class == ClassBE, c.Class == ClassSystem:
		return ExclusiveNo, false
	case node.Strict:
		return ExclusiveStrict, true
	}
	return ExclusiveYes, true
}
