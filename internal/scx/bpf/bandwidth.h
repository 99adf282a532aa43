// SPDX-License-Identifier: GPL-2.0
// bandwidth.h: quota and burst of groups, which the kernel does not enforce on the tasks of a sched_ext scheduler.
//
// The arithmetic is that of internal/bandwidth (kernel/sched/fair.c, __refill_cfs_bandwidth_runtime and
// do_sched_cfs_period_timer): a pool of runtime for each group with a quota, filled up by a timer of its own at the end
// of each period, up to quota + burst. What a task runs is taken from the pools of its group and of all above. A pool
// that is dry stops its group: tasks that want to run wait in the group's own queue until the timer fills it up. What a
// group overran, until the tick that finds it, is owed: the next periods pay.

#define PATIENCE (timeout_ns / 4) // how long a task waits in a throttled group before it runs once, so that no watchdog barks

const volatile u64 timeout_ns = 20000000000ULL;
const volatile u64 slice_online = 3000000;

u32 standing; // groups that are throttled

enum kind { BEGIN = 1, END = 2 };

// event is as that of probe/bpf/throttle.bpf.c.
struct event {
	u64 group;
	u64 at;
	u64 since;
	u32 kind;
	u32 cpu;
	u64 quota;
	u64 period;
	u64 burst;
	u64 runtime;
	s64 snap;
	u64 expires;
	s64 periods;
};

struct {
	NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 1 << 18);
} events SEC(".maps");

u64 lost; // events for which there was no room

static inline void tell(struct group *g, enum kind kind, u64 now)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		add(lost, 1);
		return;
	}
	e->group = g->id;
	e->at = now;
	e->since = g->since;
	e->kind = kind;
	e->cpu = bpf_get_smp_processor_id();
	e->quota = g->now.quota;
	e->period = g->now.period;
	e->burst = g->now.burst;
	e->runtime = g->runtime > 0 ? g->runtime : 0;
	e->snap = g->snap;
	e->expires = g->expires;
	e->periods = g->periods;
	bpf_ringbuf_submit(e, 0);
}

// activate starts the period timer (start_cfs_bandwidth).
static inline void activate(struct group *g, u64 now)
{
	if (g->active || __sync_val_compare_and_swap(&g->active, 0, 1))
		return;
	g->expires = now + g->now.period;
	bpf_timer_start(&g->timer, g->expires, BPF_F_TIMER_ABS);
}

static inline void throttle(struct group *g, u64 now)
{
	if (g->standing || __sync_val_compare_and_swap(&g->standing, 0, 1))
		return;
	g->since = now;
	add(g->begins, 1);
	add(standing, 1);
	tell(g, BEGIN, now);
}

static inline void unthrottle(struct group *g, u64 now)
{
	if (!g->standing || !__sync_val_compare_and_swap(&g->standing, 1, 0))
		return;
	add(g->wall, now - g->since);
	add(standing, -1);
	tell(g, END, now);
}

// charge takes what a task of a group ran from the pools.
noinline int charge(u64 id, u64 ran, u64 now)
{
	struct group *g = group_at(id);

	for (int i = 0; i < LEVELS && g; i++) {
		fresh(g);
		if (!i || g->now.quota)
			add(g->used, ran);
		if (g->now.quota) {
			g->idle = 0;
			activate(g, now);
			if (add(g->runtime, -(s64)ran) <= (s64)ran)
				throttle(g, now);
		}
		if (!g->above)
			break;
		g = group_at(g->above);
	}
	return 0;
}

// stopped is the nearest throttled group at or above a group; 0: none.
noinline u64 stopped(u64 id)
{
	struct group *g = group_at(id);

	for (int i = 0; i < LEVELS && g; i++) {
		fresh(g);
		if (g->standing)
			return g->id;
		if (!g->above)
			break;
		g = group_at(g->above);
	}
	return 0;
}

// refill is a quota more, up to quota + burst; what was used beyond one quota since the last time is a burst.
static inline void refill(struct group *g)
{
	s64 before = g->runtime, full = g->now.quota + g->now.burst, after = before + (s64)g->now.quota;

	if (g->snap > after) {
		g->burst_time += g->snap - after;
		g->bursts++;
	}
	if (after > full)
		after = full;
	add(g->runtime, after - before);
	g->snap = after;
}

// limit is a write of quota, period or burst (tg_set_cfs_bandwidth): it grants a quota, and ends a throttle.
static inline void limit(struct group *g, struct bandwidth *to)
{
	g->now = *to;
	if (to->quota) {
		if (g->runtime < 0) // what was owed is forgiven
			g->runtime = 0;
		refill(g);
		g->idle = 0;
	}
	add(generation, 1);
	if (g->standing || scx_bpf_dsq_nr_queued(g->id) > 0) {
		g->poked = 1;
		bpf_timer_start(&g->timer, 0, 0);
	}
}

static inline bool same(struct bandwidth *a, struct bandwidth *b)
{
	return a->quota == b->quota && a->period == b->period && a->burst == b->burst;
}
