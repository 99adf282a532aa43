// Package probe reports when a control group is throttled, by eBPF.
//
// # Problem
//
// A group that has used up its quota is throttled until its period ends, up to 100 ms. A reader of cpu.stat learns of
// it afterwards, and also pays for reading the groups that are not throttled. The kernel knows at once, but has no
// event for it.
//
// # Approach
//
// Tracepoints of the scheduler follow each throttle: a task of a throttled group is switched away from, or woken
// without being able to run. Programs there (bpf/throttle.bpf.c) read one number of the task's queue and return if it
// is zero. If not, they walk up to the groups whose own quota is used up, and send an event for each that is watched:
// one for a throttle, whatever the number of CPUs. The first task of the group that runs again is its end. Counts and
// times are kept in the kernel, so that a lost event loses no figure.
//
// With Options.Ahead a program at each tick and switch compares the rest of the pool with what the CPUs of the group
// take until its next check, and sends an event while there is time for a refill. With Options.Use the group's own
// period timer says when to read the sums of CPU time that the kernel keeps for each group and CPU: a period's use
// costs nothing at a switch.
//
// fentry would be simpler, but is not allowed everywhere. One object serves cgroup v1 and v2 and kernels from 5.10 on:
// the fields are found in the running kernel's BTF (CO-RE).
//
// # Known limits
//
// A queue that is throttled while it is filled up by a release (unthrottle_cfs_rq), by a change of priority or by
// a move of a task into the group shows only at the next wake-up or switch of the group on that CPU. A throttle that
// begins before the group is watched may not be reported. A user of events must still read the groups from time
// to time, and whenever Lost grows.
//
// Events ahead of a throttle depend on ticks: between two ticks a group that spreads over more CPUs can use up its pool
// unforeseen, and on a CPU without ticks (nohz_full) always. A period's use misses what a CPU did since its last tick,
// up to 10 ms, and finds it in the next one. It is that of tasks of the fair class, and of groups with a limit: others
// have no period.
//
// A throttle is taken to end when a task of the group runs. Where others keep it from running, that time counts too. Of
// a group that its last task has left, that is the next switch to a task there: a task that moves in while it runs is
// not seen until it has slept. The time without any task is not counted in any case. The programs search twelve levels
// above a task for groups; the use of a watched group above them is not known.
package probe

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-Wall -Werror -mcpu=v3" -go-package probe kernel bpf/throttle.bpf.c
