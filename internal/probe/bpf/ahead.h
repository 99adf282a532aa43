// SPDX-License-Identifier: GPL-2.0
// ahead.h: an event when a pool will run dry before its period ends, while there is time to refill it.
//
// A CPU takes its runtime from the group's pool in slices (5 ms). So it is throttled when its slice is used up and the
// pool is empty. The program runs on a CPU when the kernel accounts for its task, at each tick at least. Where the
// runtime that is left comes near to the use until the next tick, the program checks the CPUs one by one (outlook.h),
// and reports the group if one will be throttled. Once a tick it counts the CPUs that take from the pool, when the rest
// divided by the active CPUs (queue.h), which are more, comes near.
#include "outlook.h"

const volatile u64 horizon = 6000000; // a tick, and what a refill takes
const volatile u64 least = 20000000;  // quotas below it are not looked at: much of their time is within the horizon
#define MAX_RT_PRIO 100	      // include/linux/sched/prio.h
#define RISE 5000000		      // CPUs that go idle give back less, a slice at most

// takes_cpu says whether a CPU runs a group, or the group is throttled there.
static inline int takes_cpu(u64 id, u64 cpu)
{
	struct queue *own = queue_of(id, cpu);
	struct cfs_rq *q;

	if (!own)
		return 0;
	q = (void *)own->address;
	return running_in(q) || dry(q);
}

global int takes(u64 id)
{
	return go_on(id, takes_cpu);
}

// crowd counts the CPUs that take from a group's pool. The count is returned through the map: there the verifier
// forgets its range, and does not walk the code that follows for each number of CPUs.
static inline u64 crowd(struct group *g, u64 id)
{
	u64 ticks = bpf_jiffies64(), n;

	if (g->counted != ticks) {
		*(volatile u64 *)&g->running = walk(g, id, false, takes);
		g->counted = ticks;
	}
	n = *(volatile u64 *)&g->running;
	return n ? n : 1;
}

// known says whether the pool was reported since its last filling. A filling is seen when the pool has more runtime, or
// when the pool should have been empty before the last check.
static inline bool known(u64 id, struct filling *fresh, u64 now)
{
	struct filling *f = bpf_map_lookup_elem(&foreseen, &id);

	if (!f)
		return false;
	if (f->expires == fresh->expires && fresh->runtime <= f->runtime + RISE && now < f->lasts + step / 2)
		return true;
	bpf_map_delete_elem(&foreseen, &id);
	return false;
}

// foresee checks one level: left is the runtime of this CPU.
global int foresee(u64 queue, s64 left)
{
	struct cfs_rq *q = (void *)queue;
	struct task_group *tg = READ(q, tg);
	struct filling fresh = {};
	u64 id = group_of(tg), n, now;
	s64 pool, lasts, first;
	struct group *g;

	g = bpf_map_lookup_elem(&groups, &id);
	if (!g || busy())
		return 0;
	pool = READ(tg, cfs_bandwidth.runtime);
	n = crowd(g, id);
	if (READ(tg, cfs_bandwidth.quota) < 2 * n * horizon)
		return 0; // so many use up much of it within the horizon, and a refill takes what they hold
	lasts = left + (s64)((u64)pool / n);
	now = bpf_ktime_get_ns();
	fresh.runtime = pool;
	fresh.expires = READ(tg, cfs_bandwidth.period_timer._softexpires);
	if (lasts > (s64)(horizon + slice) || known(id, &fresh, now))
		return 0;
	first = outlook(g, id, queue, left);
	fresh.lasts = now + first;
	if (first == NEVER || fresh.lasts >= fresh.expires)
		return 0;
	if (bpf_map_update_elem(&foreseen, &id, &fresh, BPF_NOEXIST))
		return 0; // another CPU was first
	g = bpf_map_lookup_elem(&groups, &id);
	if (!g) { // forgotten in the meantime
		bpf_map_delete_elem(&foreseen, &id);
		return 0;
	}
	add(&g->aheads, 1);
	report(g, id, DRY, q, now, fresh.lasts);
	return 0;
}

// near says whether a CPU's share of the pool, of so many CPUs, and its own runtime may not last until its next check.
static inline bool near(s64 left, u64 pool, u64 cpus_of_group)
{
	return left + (s64)(pool / cpus_of_group) < (s64)(horizon + slice);
}

// account follows the runtime of a task. The tracepoint comes before the kernel takes the time from the slice
// (update_curr). A throttle that is due at once is seen by the switch. From 6.8 on it comes for tasks with real-time
// priority too (update_curr_common), which use no runtime of their groups.
static inline int account(u64 *ctx, bool ahead)
{
	struct task_struct *p = (void *)ctx[0];
	struct sched_entity *at = &p->se, *se = p->se.parent;
	struct cfs_rq *q = p->se.cfs_rq;
	u64 tick = bpf_jiffies64();
	s64 ran = ctx[1];

	if (!se || q->throttle_count > 0 || p->prio < MAX_RT_PRIO)
		return 0;
	unroll for (int i = 0; i < DEPTH; i++) {
		if (q->runtime_enabled) {
			s64 left = q->runtime_remaining - ran;
			u64 id = id_of(q->tg), cpu = q->rq->cpu, pool = q->tg->cfs_bandwidth.runtime;
			u32 slot = recent_slot(id, cpu, i);
			struct recent *r = bpf_map_lookup_elem(&recents, &slot);

			if (!r)
				return 0;
			if (r->group != id || r->cpu != cpu || r->expires != q->tg->cfs_bandwidth.period_timer._softexpires)
				mark((u64)READ(at, cfs_rq), (u64)READ(at, parent), slot);
			if (ahead && r->active && q->tg->cfs_bandwidth.quota >= least && left + (s64)pool > 0 && near(left, pool, 4 * r->active)) {
				if (r->tick != tick)
					recount(id, slot);
				if (near(left, pool, r->active))
					foresee((u64)READ(at, cfs_rq), left);
			}
		}
		at = se;
		q = se->cfs_rq;
		se = se->parent;
		if (!se)
			return 0;
	}
	nested((u64)READ(p, sched_task_group));
	return 0;
}

SEC("tp_btf/sched_stat_runtime") int sched_stat_runtime(u64 *ctx)
{
	return account(ctx, true);
}

// Loaded in place of the former where no throttle is foreseen.
SEC("tp_btf/sched_stat_runtime") int sched_stat_runtime_active(u64 *ctx)
{
	return account(ctx, false);
}
