package diagnose

import (
	"time"

	"plimsoll/internal/report"
)

// The contention of a node.
//
// Problem: the kernel's CPU pressure (PSI) counts a thread that its own limit throttles as it counts one that waits
// behind a neighbour. A node full of containers with tight limits shows a high pressure on idle CPUs, and whoever moves
// pods by that figure moves the wrong ones. Only the second kind of wait ends when a neighbour leaves.
//
// Approach: the threads of a node's containers are runnable while they run, or wait for a CPU and no limit is in the
// way. In a part of that time, the CPU that they wait for runs another group. The contention is that part:
//
//	contention = time waited behind other groups / (time running + time waited without a limit)
//
// It lies in [0, 1] for any number of threads and CPUs. Two threads of two groups on one CPU have 0.5: each runs for
// one half of the time and waits for the other half. A group that only its own limit throttles has 0: a throttled
// thread is in neither sum, so that a limit does not dilute the figure either. Work of a contention c takes 1 / (1-c)
// times as long as on CPUs that nobody else uses.
//
// Other groups are all that are not the container: containers of the same pod, services of the node, threads of the
// kernel. The caller leaves out offline containers as waiters. They are to stand back, and would keep the figure high
// on a node where nobody suffers; who waits behind them counts.
//
// Both sums are counters, so that Prometheus divides them over any window. Ratio is the quotient over the last whole
// interval.
//
// Known limits: the cause of a wait is known when the wait is over (internal/probe/runq). A wait longer than the
// interval counts for the interval in which it ends, and a thread that never gets a CPU for none. The oldest part of a
// wait during which more than 63 other turns passed has no cause: it counts as runnable time only, as do interrupts and
// a hypervisor that takes the CPU. From 5.19 to 6.5 the kernel's clock of throttled time is slow on a slow CPU, and a
// rest of a throttle counts as runnable. The other hardware thread of a core does not count. The figure does not say
// how much work is concerned: a node that does little, all of it at the same moments, has a high contention. How many
// threads wait, on average, is the increase of Contended in a second.

// ContentionEvery is the interval of Ratio.
const ContentionEvery = 10 * time.Second

// Node sums up the containers of a node. The zero Node is an empty one.
type Node struct {
	sum      report.Contention // Contended and Runnable since the beginning, of containers that are gone too
	begun    bool
	since    time.Duration // when the present interval began
	previous report.Contention
}

// Add adds what a container's threads did between two readings of it.
func (n *Node) Add(before, after Reading) {
	waits := after.Parts.minus(before.Parts)
	n.sum.Contended += max(waits.Behind, 0)
	// A reading in the middle of a switch may be ahead of the next one, and these are shown as counters.
	n.sum.Runnable += max(after.Running-before.Running, 0) + max(waits.sum()-waits.Own-waits.Above, 0)
}

// At ends the interval if it is over: the containers were read at a time, on any clock that does not go back.
func (n *Node) At(now time.Duration) {
	if !n.begun {
		n.begun, n.since = true, now
		return
	}
	if now-n.since < ContentionEvery {
		return
	}
	ratio := 0.0
	if runnable := n.sum.Runnable - n.previous.Runnable; runnable > 0 {
		ratio = float64(n.sum.Contended-n.previous.Contended) / float64(runnable)
	}
	n.since, n.previous, n.sum.Ratio = now, n.sum, &ratio
}

// Sum is the contention so far.
func (n *Node) Sum() report.Contention { return n.sum }
