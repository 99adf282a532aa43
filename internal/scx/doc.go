// Package scx loads schedulers into the running kernel (sched_ext), and removes them again. Its own scheduler runs
// online tasks before offline ones on the whole machine.
//
// # Problem
//
// cpu.idle and weights decide between siblings on one CPU. They do not keep an offline task from a CPU beside an online
// one on the same core, nor do they place tasks. Group Identity does, on kernels that have it. sched_ext can do it on
// mainline, but a scheduler that takes all tasks takes over what the fair class did for them: quota and burst, too.
//
// # Approach
//
// The programs (bpf/scheduler.bpf.c) keep two queues, online and offline, each in the order of the groups' virtual
// time, and take from the second when the first has nothing for a CPU. Limits are enforced with the arithmetic of
// package bandwidth (bpf/bandwidth.h). Classes, and limits that are not those of the kernel's files,
// come through a map.
//
// Loading is all or nothing, for this and any other object (Load, Attach): a preflight lists what prevents the load,
// the verifier sees the programs before anything changes, an attempt that the kernel refuses as busy is repeated a few
// times, and the stall of the tasks is measured. The kernel ends the scheduler when the process that attached it
// dies, however that happens, and its watchdog does when a task does not run: all tasks are back on the fair class
// then. Nothing of it is pinned, so nothing can stay behind.
//
// # Known limits
//
// A task that overruns its slice or its group's quota is found by the tick, 1 to 10 ms: what a group overran, its next
// periods pay. One queue serves all CPUs: hundreds of them would contend for its lock. Real-time and deadline tasks are
// above every sched_ext scheduler, which does not see them: none of this applies to them. A real-time task that keeps a
// CPU keeps it from the tasks that ran there or are bound to the CPU, until the watchdog ends the scheduler, and the
// fair class has its 5 % of the CPU for them (fair_server, 6.12). The callback ops.cpu_release does not help where the
// CPU idled before: the kernel does not call it then.
package scx

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -no-global-types -type group -type setting -cflags "-Wall -Werror -mcpu=v3" -go-package scx kernel bpf/scheduler.bpf.c
