// SPDX-License-Identifier: GPL-2.0
// outlook.h: when the first CPU of a group will be throttled.
//
// Problem: the sum of the runtime in the pool and on the CPUs does not say it. At a tick the kernel takes a task's use
// from its CPU's slice, and fills an empty slice from the pool to a whole one (5 ms). Of two CPUs one may find the pool
// empty and be throttled while the other has nearly a whole slice.
//
// Approach: sum what each CPU will take at its next tick and at the one after. All CPUs get what they need until the
// pool is empty, the last one less. A CPU that has nothing after a tick is throttled. The CPUs tick all at once, or in
// turns (skew_tick), so another CPU's next tick may be now, or a tick away: the time that it has not accounted for
// since its last tick shows which.
//
// Known limits: where CPUs tick in turns, the first CPU that needs runtime is assumed to get too little. A switch is a
// check too, and so is HRTICK (on by default from 7.1), where a CPU has more than one task. A CPU that the group starts
// on, or leaves, changes the result. A group that is active on more than 64 CPUs is not checked.

const volatile u64 step = 4000000;  // between two looks: a tick, or what a refill takes, if that is longer
const volatile u64 slice = 5000000; // kernel.sched_cfs_bandwidth_slice_us
#define NEVER 0x7fffffff

// draws is what all CPUs take at two ticks, and when the first of them does. It is kept in a map, one a CPU, as sums
// are (balance.h).
struct draws {
	s64 first, second;
	s64 soon, later;
	u64 now; // the clock of the CPU that looks
	u64 own; // its queue
};

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct draws);
} drawn SEC(".maps");

static inline struct draws *draws(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&drawn, &only);
}

// draw adds what a CPU takes that will have so much left at its next tick, at an instant from now.
global int draw(s64 left, s64 at)
{
	struct draws *d = draws();

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

// consider_cpu adds what another CPU takes. The CPU's clock of task time shows how long it has not accounted for its
// task, as the difference to its clock when both were last set. That clock stops while others, such as the host of a
// virtual machine, have the CPU.
static inline int consider_cpu(u64 id, u64 cpu)
{
	struct queue *other = queue_of(id, cpu);
	struct draws *d = draws();
	struct sched_entity *curr;
	struct cfs_rq *q;
	struct rq *rq;
	s64 left, behind;

	if (!other || !d || other->address == d->own)
		return 0;
	q = (void *)other->address;
	curr = running_in(q);
	if (!curr)
		return 0;
	rq = READ(q, rq);
	left = READ(q, runtime_remaining);
	behind = d->now - READ(curr, exec_start) - (READ(rq, clock) - READ(rq, clock_task));
	if (behind < 0)
		behind = 0;
	if (behind > (s64)step)
		behind = step;
	if (2 * behind < (s64)step) // it has just looked
		return draw(left, -behind);
	return draw(left - (s64)step, (s64)step - behind);
}

global int consider(u64 id)
{
	return go_on(id, consider_cpu);
}

// verdict says in how many nanoseconds the pool has less than is needed, by as much as the last CPU needs to go on;
// NEVER: not at these two ticks.
static inline s64 verdict(struct draws *d, s64 pool)
{
	s64 lacks = d->first - pool, rest = lacks < 0 ? -lacks : 0, at = NEVER;

	if (d->first && lacks >= (s64)slice)
		at = d->soon;
	else if (lacks > 0 && (s64)slice - lacks <= (s64)step) // the last one got so little that it is back at the next look
		at = d->soon + (s64)step;
	else if (d->second && d->second - rest >= (s64)slice)
		at = d->later;
	return at > 0 ? at : 0;
}

// outlook: left is the runtime of the CPU that runs this, which its queue does not show yet.
static noinline s64 outlook(struct group *g, u64 id, u64 queue, s64 left)
{
	struct cfs_rq *own = (void *)queue;
	struct draws *d = draws();

	if (!d || g->actives > MOST)
		return NEVER;
	*d = (struct draws){.soon = NEVER, .later = NEVER, .now = READ(READ(own, rq), clock), .own = queue};
	draw(left, 0);
	walk(g, id, false, consider);
	return verdict(d, READ(READ(own, tg), cfs_bandwidth.runtime));
}
