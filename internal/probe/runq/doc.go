// Package runq measures, by eBPF, how long the threads of each control group run and wait for a CPU, and what their
// CPU does meanwhile.
//
// # Problem
//
// A container that is slow may be short of CPU for many reasons, and the kernel counts few of them: the time
// throttled (in a unit of its own, CPUs), the time used, and per thread the time in a run queue. It does not say which
// group had the CPU. Following each switch in user space would cost more than the waits do.
//
// # Approach
//
// Programs at the tracepoints of the scheduler (bpf/runq.bpf.c) keep a state for each thread: away, running or
// waiting. Per group and CPU two numbers hold the thread time in each state, also of threads that are in it now, so
// that a reading at any instant is exact without an event a switch. Each CPU remembers its last stints: which group
// ran, until when. When a wait is over, the part that a limit took is read from the kernel's own clock of throttled
// time, and the rest is divided by the stints of the CPU that was waited for. So each part of a wait has one cause, and
// the causes add up to the wait.
//
// Of a core with two hardware threads each CPU keeps how long it has run groups of each class, and shows its present
// turn to the other one. The other reads it when a turn of its own begins and when it ends: the difference, less what
// its own group ran there, is exactly how long the turn was beside others.
//
// At the start the threads that run and wait are listed. Then a program runs on each CPU without a switch so far, and
// notes its thread: a thread that is alone on its CPU may keep it for seconds.
//
// Groups are numbered by user space (Set). A thread belongs to the nearest group above it that has a number, so that
// a container's own groups are part of it.
//
// # Known limits
//
// A wait shows its causes when it is over. Turns of one group in a row are one stint; a wait in which more than 63
// stints passed has its oldest part without a name (Sums.Unnamed). Whether another CPU was idle is checked when
// a wait begins and ends, and counts for all of it. In a wait with a throttle, the limit's part is assumed to
// have come first.
//
// From 5.19 to 6.5 the kernel keeps the throttled time of a queue in a clock that runs slower with a slower CPU:
// there some of it may count as waiting for a neighbour. Interrupts are separate only on kernels with
// CONFIG_IRQ_TIME_ACCOUNTING, and a hypervisor's steal with CONFIG_PARAVIRT_TIME_ACCOUNTING; elsewhere that time is
// part of the group that ran.
//
// A switch without an event is noticed at the next one of that CPU, and counted (Missed). The kernel of a sandbox was
// seen (6.18.44-fc) that shows none away from some of its own threads, nor does ftrace there.
//
// On machines with more than some ten CPUs a CPU has fewer cells for sums than there are groups (8 MiB in all). Of a
// group that lost its cell on a CPU to another one, how long it ran beside others in the turn after that is not
// exact, by the length of a turn at most.
//
// A thread that is moved to another group while it runs or waits counts for the old one until its next switch. Of more
// than two threads of a core the first sibling is used. What interrupts and a hypervisor take of the turn that a CPU
// is in at the start is not separate. Machines with more than 1,024 CPUs are refused.
package runq

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-Wall -Werror -mcpu=v3" -go-package runq kernel bpf/runq.bpf.c
