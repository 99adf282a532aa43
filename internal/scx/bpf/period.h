// SPDX-License-Identifier: GPL-2.0
// period.h: the end of a group's period, and of a throttle with it.

// drain releases the tasks that wait in a group's own queue. A group that is still throttled releases a task that has
// waited too long.
static noinline int drain(struct group *g)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, g->id, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			struct group *own = group_of(p);
			u64 by = own ? throttled_by(p, own) : 0;
			s32 c;

			if (!own)
				break;
			if (by && by != g->id) {
				scx_bpf_dsq_move_vtime(&it, p, by, 0);
				continue;
			}
			if (by && !aged(p))
				break;
			scx_bpf_dsq_move_set_vtime(&it, turn(own));
			if (own->offline) {
				scx_bpf_dsq_move_vtime(&it, p, OFFLINE, 0);
				wake_idle(p);
				continue;
			}
			scx_bpf_dsq_move_vtime(&it, p, ONLINE, 0);
			c = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
			if (c >= 0) {
				scx_bpf_kick_cpu(c, SCX_KICK_IDLE);
				continue;
			}
			c = find(p);
			if (c >= 0)
				scx_bpf_kick_cpu(c, SCX_KICK_PREEMPT);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

// over counts a period and adds the next quota, also after a period without use: otherwise the burst would not be whole
// again, however long the group is idle.
static inline void over(struct group *g, u64 now)
{
	g->periods++;
	g->last = g->used - g->mark;
	g->mark = g->used;
	if (g->last > g->peak)
		g->peak = g->last;
	if (g->standing)
		g->throttled++;
	refill(g);
	g->expires += g->now.period;
	if (before(g->expires, now))
		g->expires = now + g->now.period;
}

// expired is the end of a group's period (do_sched_cfs_period_timer).
static int expired(void *map, u64 *id, struct group *g)
{
	u64 now = bpf_ktime_get_ns();
	s32 waiting;

	bpf_rcu_read_lock();
	waiting = scx_bpf_dsq_nr_queued(g->id);
	if (g->poked) {
		g->poked = 0;
	} else {
		bool rests = waiting <= 0 && (!g->now.quota || (g->idle && !g->standing));

		if (!rests)
			g->idle = !g->standing;
		if (g->now.quota)
			over(g, now);
		if (rests) {
			g->active = 0;
			if (g->now.quota && (g->standing || !g->idle))
				activate(g, now); // somebody ran meanwhile, and saw a timer that runs
			goto out;
		}
	}
	if (g->runtime > 0 || !g->now.quota)
		unthrottle(g, now);
	drain(g);
	if (g->active)
		bpf_timer_start(&g->timer, g->now.quota ? g->expires : now + 100000000, BPF_F_TIMER_ABS);
out:
	bpf_rcu_read_unlock();
	return 0;
}
