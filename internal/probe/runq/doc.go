// Package runq measures, by eBPF, how long the threads of each control group run and wait for a CPU, and what their
// CPU does meanwhile.
//
// # Problem
//
// A container that is slow may be short of CPU for many reasons, and the kernel counts few of them: the time
// throttled (in a unit of its own, CPUs), the time used, and per thread the time in a run queue. Who was in the way
// it does not tell. Following each switch in user space would cost more than what is looked for.
//
// # Approach
//
// Programs at the tracepoints of the scheduler (bpf/runq.bpf.c) keep a state for each thread: away, running or
// waiting. Per group and CPU two numbers hold the thread time in each state, also of threads that are in it now, so
// that a reading at any instant is exact without an event a switch. Each CPU remembers its last stints: who ran,
// until when. When a wait is over, the part that a limit took is read off the kernel's own clock of throttled time,
// and the rest is laid over the stints of the CPU that was waited for. Each part of a wait has thereby one cause, and
// the causes add up to the wait.
//
// Of a core with two hardware threads each CPU keeps how long it has run groups of each class, and shows its present
// turn to the other one. That one asks when a turn of its own begins and when it ends: the difference, less what its
// own group ran there, is how long the turn was beside others, to the instant.
//
// At the start the threads that run and wait are listed, and then each CPU that has not been switched yet is asked,
// by a program that runs there, who has it: a thread that is alone on its CPU may keep it for seconds.
//
// Groups are numbered by user space (Set). A thread belongs to the nearest group above it that has a number, so that
// a container's own groups are part of it.
//
// # Known limits
//
// A wait shows its causes when it is over. Turns of one group in a row are one stint; a wait in which more than 63
// stints passed has its oldest part without a name (Sums.Unnamed). Whether a CPU was idle elsewhere is looked at when
// a wait begins and ends, and stands for all of it. Of a wait that a limit interrupted, the limit's part is taken to
// have come first.
//
// From 5.19 to 6.5 the kernel keeps the throttled time of a queue in a clock that runs slower with a slower CPU:
// there some of it may count as waiting for a neighbour. Interrupts are told apart only by kernels with
// CONFIG_IRQ_TIME_ACCOUNTING, and a hypervisor's steal with CONFIG_PARAVIRT_TIME_ACCOUNTING; elsewhere that time is
// part of whoever ran.
//
// A switch of which the kernel does not tell is noticed at the next one of that CPU, and counted (Missed).
//
// On machines with more than some ten CPUs a CPU has fewer cells for sums than there are groups (8 MiB in all). Of a
// group that lost its cell on a CPU to another one, how long it ran beside others in the turn after that is not
// exact, by the length of a turn at most.
//
// A running thread that is moved to another group counts for the old one until its next switch. Of more than two
// threads of a core the first sibling is looked at. What interrupts and a hypervisor take of the turn that a CPU is
// in at the start is not told apart. Machines with more than 1,024 CPUs are refused.
package runq

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-Wall -Werror -mcpu=v3" -go-package runq kernel bpf/runq.bpf.c
