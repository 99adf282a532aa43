// SPDX-License-Identifier: GPL-2.0
// outlook.h: when the first CPU of a group is to stand still.
//
// Problem: the sum of what is in the pool and on the CPUs does not say it. The kernel takes what a task ran from its CPU's slice at
// a tick, and the slice is filled up from the pool when there is nothing left of it, to a whole one (5 ms): of two CPUs one may
// find the pool empty and stand still while the other has a slice that it hardly began.
//
// Approach: what each CPU will take at its next look and at the one a tick later is added up. All get what they want until the
// pool is empty, the last one less; who ends a look with nothing stands still. The CPUs look all at once, or in turns (skew_tick),
// so that another one's next look may be now, or a tick away: what it has not accounted for since its last tells.
//
// Known limits: where CPUs look in turns the first that wants something is taken for the one that gets too little. A switch is a
// look too. A CPU that the group starts on, or leaves, changes what was told.

const volatile u64 step = 4000000;  // between two looks: a tick, or what a refill takes, if that is longer
const volatile u64 slice = 5000000; // kernel.sched_cfs_bandwidth_slice_us
#define NEVER 0x7fffffff

// draws is what all CPUs take at two looks, and when the first of them does. It is kept in a map, one a CPU: what comes from a map the
// verifier takes for any number, so that it walks the way through a CPU's queue once, and not once for each that came before.
struct draws {
	s64 first, second;
	s64 soon, later;
};

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct draws);
} drawn SEC(".maps");

static inline struct draws *sums(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&drawn, &only);
}

// draw adds what a CPU takes that will have so much left at its next look, at an instant from now.
global int draw(s64 left, s64 at)
{
	struct draws *d = sums();

	if (!d)
		return 0;
	if (left <= 0) {
		d->first += (s64)slice - left;
		if (at < d->soon)
			d->soon = at;
		left = slice;
	}
	left -= step;
	at += step;
	if (left <= 0) {
		d->second += (s64)slice - left;
		if (at < d->later)
			d->later = at;
	}
	return 0;
}

// consider adds what another CPU takes. For how long it has not accounted for what it runs its clock of task time says, which stands
// still while others, such as the host of a virtual machine, have the CPU: by the difference to its clock, as both were last set.
global int consider(u64 queue, u64 now)
{
	struct cfs_rq *q = (void *)queue;
	struct sched_entity *curr = READ(q, curr);
	struct rq *rq = READ(q, rq);
	s64 left = READ(q, runtime_remaining), behind;

	if (!curr)
		return 0;
	behind = now - READ(curr, exec_start) - (READ(rq, clock) - READ(rq, clock_task));
	if (behind < 0)
		behind = 0;
	if (behind > (s64)step)
		behind = step;
	if (2 * behind < (s64)step) // it has just looked
		return draw(left, -behind);
	return draw(left - (s64)step, (s64)step - behind);
}

// verdict says in how many nanoseconds there is less in the pool than is wanted, by as much as the last one needs to go on; NEVER:
// not at these two looks.
static inline s64 verdict(struct draws *d, s64 pool)
{
	s64 lacks = d->first - pool, rest = lacks < 0 ? -lacks : 0;

	if (d->first && lacks >= (s64)slice)
		return d->soon > 0 ? d->soon : 0;
	if (lacks > 0 && (s64)slice - lacks <= (s64)step) // the last one got so little that it is back at the next look
		return d->soon + (s64)step;
	if (d->second && d->second - rest >= (s64)slice)
		return d->later > 0 ? d->later : 0;
	return NEVER;
}

// outlook: left is the runtime of the CPU that looks, which its queue does not show yet.
global int outlook(u64 queue, s64 left)
{
	struct cfs_rq *own = (void *)queue, **all, *q;
	struct task_group *tg = READ(own, tg);
	u64 now = READ(READ(own, rq), clock);
	struct draws *d = sums();

	if (!d)
		return NEVER;
	*d = (struct draws){.soon = NEVER, .later = NEVER};
	draw(left, 0);
	all = READ(tg, cfs_rq);
	for (u32 i = 0; i < cpus && i < CPUS; i++)
		if (!bpf_probe_read_kernel(&q, sizeof(q), all + i) && q && q != own)
			consider((u64)q, now);
	return verdict(d, READ(tg, cfs_bandwidth.runtime));
}
