package preempt

import (
	"os"
	"runtime"
)

// spareProcessors is how many more goroutines may run than the machine has CPUs.
const spareProcessors = 4

// AddProcessors makes room for the thread that answers throttles. The kernel runs that thread before all others, but
// Go's scheduler has no priorities: when GOMAXPROCS goroutines run, a goroutine that returns from a system call waits
// until another one blocks, or has had its 10 ms. On two CPUs a few readers of the status are enough for that. With
// more processors than CPUs the kernel decides instead. A GOMAXPROCS in the environment is left alone.
func AddProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcessors)
	}
}
