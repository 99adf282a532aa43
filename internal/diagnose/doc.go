// Package diagnose says why a container was slow, in time that adds up. It is pure: readings of counters in, words and
// figures out.
//
// # Problem
//
// A container reserves CPUs and does not get them, though the CPUs of the node suffice for all reservations. The kernel
// shares each CPU among the threads in its queue, not the machine among the reservations ("Mind the Gap", SoCC '21). A
// low figure of CPU used does not say whether more was wanted,
// and a counter of throttled time says nothing of neighbours.
//
// # Approach
//
// A thread wants a CPU while it runs, waits in a run queue or is throttled. In each slice of 100 ms, the
// usual period of a limit, a container
//
//	wanted    = thread time running + waiting
//	received  = thread time running, without what interrupts and the hypervisor took of it
//	shortfall = min(wanted, reserved) - received, if above 0
//
// and the slices are summed: time above the reservation in one slice does not make up for a shortfall in another.
// Every moment of a wait has one cause, so that wanted = received + the causes.
//
// A shortfall is divided among the causes that are not the container's own threads, in proportion to their time
// in the same slice: a thread that waits for another one of the same container would not run with all neighbours gone.
// What these causes do not cover falls to its own threads. The causes of a wait are known when it is over, so a
// shortfall whose wait still lasts is kept for the slice in which it ends.
//
// # Known limits
//
// More threads than reserved CPUs make a container want more than it has reserved; which of its waiting threads the
// reservation was for is not defined, hence the proportion. Waits that lasted already when the diagnosis began are
// scaled out. Contention in hardware (caches, the other thread of a core) slows a container that receives all it wants:
// only the time beside a busy sibling is shown.
package diagnose
