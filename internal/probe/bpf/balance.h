// SPDX-License-Identifier: GPL-2.0
// balance.h: what a group has used of the period that stands, and what its CPUs hold.
//
// What a group can use up to its period's end, if nothing more is handed out, is what it has used, what is in its
// pool, and what its CPUs took from the pool and have not used (runtime_remaining). What CPUs hold is lost in a write
// of quota or burst (kernel/sched/core.c, tg_set_cfs_bandwidth sets it to 1 ns), so that the sum of what was handed
// out says too much. Both sums lag by as much as a CPU has not accounted for since its last tick, and what one lacks
// the other has still.

const volatile u32 cpus = 1;	     // of the machine
const volatile bool balanced = true; // events have both sums

// sums are of one walk. They are kept in a map, one a CPU: what comes from a map the verifier takes for any number.
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

// tally_cpu adds what a CPU has used and holds, or owes. The answer is 1 if it owes nothing and does not
// run the group: then it is not active any more when the period ends.
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

// tally is not global: older verifiers walk a global function also where no call of it can be reached, and this one
// is not to be in the way where balanced is false.
static noinline int tally(u64 id)
{
	return go_on(id, tally_cpu);
}

// balance leaves both as they are where the begin of the period was not seen (period.h).
static noinline int balance(struct group *g, u64 id, s64 *spent, u64 *held)
{
	struct sums *s = sums();

	if (!g->end || !s)
		return 0;
	*s = (struct sums){};
	walk(g, id, false, tally);
	*held = s->held;
	*spent = s->used;
	return 0;
}
