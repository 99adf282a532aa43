// SPDX-License-Identifier: GPL-2.0
// switch.h: the clocks of throttled time, loaded apart from the programs at the sockets.

// kept says whether a task is kept from running by a limit: it is throttled by itself (6.18), or its queue is.
static inline bool kept(struct task_struct *p)
{
	struct task_struct___throttled *one = (void *)p;

	if (HAS(task_struct___throttled, throttled))
		return one->throttled;
	return p->se.cfs_rq->throttle_count > 0;
}

static inline bool runnable(struct task_struct *p)
{
	struct sched_entity___delayed *se = (void *)&p->se;

	if (HAS(task_struct___throttled, throttled))
		return true; // a task that is throttled by itself was about to run
	return p->on_rq && !(HAS(sched_entity___delayed, sched_delayed) && se->sched_delayed);
}

static noinline int start(struct task_group *tg)
{
	u32 slot = nearest(tg);
	struct clock *c = bpf_map_lookup_elem(&clocks, &slot);

	if (slot && c && !c->since && !__sync_val_compare_and_swap(&c->since, 0, bpf_ktime_get_ns()))
		add(&running, 1);
	return 0;
}

static noinline int stop(struct task_group *tg)
{
	u32 slot = nearest(tg);
	struct clock *c = bpf_map_lookup_elem(&clocks, &slot);
	u64 since, now;

	if (!slot || !c || !c->since)
		return 0;
	since = __sync_lock_test_and_set(&c->since, 0);
	if (!since)
		return 0; // another CPU was first
	now = bpf_ktime_get_ns();
	add(&c->wall, less(now, since));
	add(&stopped, 1);
	return 0;
}

SEC("tp_btf/sched_switch") int sched_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	if (kept(prev) && runnable(prev))
		start(prev->sched_task_group);
	if (running != stopped && ((struct task_struct___who *)next)->pid && !kept(next))
		stop(next->sched_task_group);
	return 0;
}

// Below 6.18 a task may wake in a queue that is throttled, which no switch shows.
SEC("tp_btf/sched_wakeup") int sched_wakeup(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	if (kept(p))
		start(p->sched_task_group);
	return 0;
}
