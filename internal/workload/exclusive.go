package workload

// Exclusive says whether a container is to have CPUs of its own, which nobody else may use.
type Exclusive string

// The answers.
const (
	ExclusiveByClass Exclusive = ""       // not said: LSE and LSR are
	ExclusiveNo      Exclusive = "false"  // it is not
	ExclusiveYes     Exclusive = "true"   // one with a limit above its request keeps the shared pool besides
	ExclusiveStrict  Exclusive = "strict" // its own CPUs and no others
)

// Reserves says whether the container asks for CPUs of its own.
func (c Container) Reserves() bool {
	switch c.Exclusive {
	case ExclusiveYes, ExclusiveStrict:
		return true
	case ExclusiveNo:
		return false
	}
	return c.Class == ClassLSE || c.Class == ClassLSR
}
