// SPDX-License-Identifier: GPL-2.0
// balance.h: what a group has used of the current period, and the runtime that its CPUs have.
//
// Without a refill, a group can use until its period's end: what it has used, what is in its pool, and what its
// CPUs took from the pool and have not used (runtime_remaining). A write of quota or burst loses the runtime of the
// CPUs (kernel/sched/core.c, tg_set_cfs_bandwidth sets it to 0, from 6.18 on to 1 ns), so the sum of all runtime handed
// out is too large. Both sums lag by what a CPU has not accounted for since its last tick. What one sum lacks the other still
// has.

const volatile u32 cpus = 1; // of the machine

// sums are of one walk. They are kept in a map, one a CPU: the verifier assumes any value for data of a map.
struct sums {
	u64 used; // since the last period's end
	u64 held;
	u64 owed;
	u64 ends; // the period ends with this walk
};

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct sums);
} walked SEC(".maps");

static inline struct sums *sums(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&walked, &only);
}

// tally_cpu adds what a CPU has used, and its runtime or debt. The answer is 1 if the CPU has no debt and does not run
// the group: then it is not active any more when the period ends.
static inline int tally_cpu(u64 id, u64 cpu)
{
	struct queue *own = queue_of(id, cpu);
	struct sums *s = sums();
	u64 used;
	s64 left;

	if (!own || !s)
		return 1;
	left = READ((struct cfs_rq *)own->address, runtime_remaining);
	used = READ((struct sched_entity *)own->entity, sum_exec_runtime);
	s->used += used - own->sum;
	if (s->ends)
		own->sum = used;
	if (left < 0) {
		s->owed -= left;
		return 0;
	}
	s->held += left;
	return !running_in((struct cfs_rq *)own->address);
}

global int tally(u64 id)
{
	return go_on(id, tally_cpu);
}

// balance finds both sums, and says whether it does: not where the begin of the period was not seen (period.h), nor on
// more CPUs than one walk looks at. Where the kernel refuses what it reads, user space has it do nothing (unbalanced in
// parts.go).
global int balance(u64 id)
{
	struct group *g = bpf_map_lookup_elem(&groups, &id);
	struct sums *s = sums();

	if (!g || !g->end || g->actives > MOST || !s || busy())
		return 0;
	*s = (struct sums){};
	walk(g, id, false, tally);
	return 1;
}
