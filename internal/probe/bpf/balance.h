// SPDX-License-Identifier: GPL-2.0
// balance.h: what a group has used of the period that stands, and what its CPUs hold.
//
// What a group can use up to its period's end, if nothing more is handed out, is what it has used, what is in its pool, and
// what its CPUs took from the pool and have not used (runtime_remaining). What CPUs hold is lost in a write of quota or
// burst (kernel/sched/core.c, tg_set_cfs_bandwidth sets it to 1 ns), so that the sum of what was handed out says too much.
// Both sums lag by as much as a CPU has not accounted for since its last tick, and what one lacks the other has still.

#define CPUS 2048 // most CPUs looked at
#define FEW 512	  // most where a throttle begins: there other tasks wait, and the verifier walks each way there

const volatile u32 cpus = 1; // of the machine

// used is the CPU time of a group, up to the last tick of each CPU.
static inline u64 used(struct task_group *tg)
{
	struct sched_entity **all = READ(tg, se), *se;
	u64 sum = 0;

	for (u32 i = 0; i < cpus && i < CPUS; i++) {
		if (!bpf_probe_read_kernel(&se, sizeof(se), all + i) && se)
			sum += READ(se, sum_exec_runtime);
	}
	return sum;
}

// balance leaves both as they are where the begin of the period was not seen (period.h).
static noinline int balance(struct group *g, struct task_group *tg, s64 *spent, u64 *held)
{
	struct cfs_rq **all = READ(tg, cfs_rq), *q;
	u64 sum = 0;

	if (!g->end || cpus > FEW)
		return 0;
	for (u32 i = 0; i < cpus && i < CPUS; i++) {
		s64 left = 0;

		if (!bpf_probe_read_kernel(&q, sizeof(q), all + i) && q)
			left = READ(q, runtime_remaining);
		if (left > 0)
			sum += left;
	}
	*held = sum;
	*spent = used(tg) - g->sum;
	return 0;
}
