// SPDX-License-Identifier: GPL-2.0
// bandwidth.h: quota and burst of groups, which the kernel does not enforce on the tasks of a sched_ext scheduler.
//
// The arithmetic is that of internal/bandwidth (kernel/sched/fair.c, __refill_cfs_bandwidth_runtime and
// do_sched_cfs_period_timer): each group with a quota has a pool of runtime. A timer of the group fills the pool at the
// end of each period, up to quota + burst. What a task runs is taken from the pools of its group and of all groups
// above. An empty pool throttles its group: runnable tasks wait in the group's own queue until the timer fills the
// pool. What a group overran, until the tick that finds it, is a debt that the next periods pay.

#define PATIENCE (timeout_ns / 4) // how long a task waits for a throttled group, or for its turn, before it runs once

const volatile u64 timeout_ns = 20000000000ULL;
const volatile u64 tick_ns = 4000000;
const volatile u64 slice_online = 3000000;

u32 standing; // groups that are throttled

enum kind { BEGIN = 1, END = 2 };

// event is that of probe/bpf/throttle.bpf.c: a throttle is reported in the same format, whoever enforces the limit.
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
	s64 used;
	u64 held; // by CPUs: nothing, for there is one pool
};
_Static_assert(sizeof(struct event) == 104, "eventSize of internal/probe");

struct {
	NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 1 << 20); // it is emptied once a second
} events SEC(".maps");

// send sends a record. It does not wake the reader: a throttle here needs no answer at once.
static inline void send(struct group *g, enum kind kind, u64 now)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		if (kind == BEGIN)
			add(g->unreported, 1);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->group = g->id;
	e->at = now;
	e->since = g->since;
	e->kind = kind;
	e->cpu = bpf_get_smp_processor_id();
	if (kind == BEGIN) {
		e->quota = g->now.quota;
		e->period = g->now.period;
		e->burst = g->now.burst;
		e->snap = g->snap > 0 ? g->snap : 0;
		e->expires = g->expires;
		e->periods = g->periods;
		e->used = g->snap > g->runtime ? g->snap - g->runtime : 0;
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

// activate starts the period timer (start_cfs_bandwidth).
static inline void activate(struct group *g, u64 now)
{
	if (g->active || __sync_val_compare_and_swap(&g->active, 0, 1))
		return;
	g->expires = now + g->now.period;
	g->mark = g->used;
	bpf_timer_start(&g->timer, g->expires, BPF_F_TIMER_ABS);
}

static inline void throttle(struct group *g, u64 now)
{
	if (g->standing || __sync_val_compare_and_swap(&g->standing, 0, 1))
		return;
	g->since = now;
	add(g->begins, 1);
	add(standing, 1);
	send(g, BEGIN, now);
}

// bucket is the power of two of a length in microseconds.
static inline u32 bucket(u64 ns)
{
	u64 us = ns / 1000;
	u32 n = 0;

#pragma unroll
	for (u32 i = 1; i < BUCKETS; i++)
		if (us >> i)
			n = i;
	return n;
}

static inline void unthrottle(struct group *g, u64 now)
{
	if (!g->standing || !__sync_val_compare_and_swap(&g->standing, 1, 0))
		return;
	add(g->wall, now - g->since);
	g->lengths[bucket(now - g->since)]++; // by the group's own timer alone
	add(standing, -1);
	send(g, END, now);
}

// charge takes the runtime of a task from the pools of its group and of the groups above.
noinline int charge(u64 id, u64 ran, u64 now)
{
	struct group *g = group_at(id);

	for (int i = 0; i < LEVELS && g; i++) {
		fresh(g);
		if (g->now.quota) {
			g->idle = 0;
			activate(g, now);
			if (add(g->runtime, -(s64)ran) <= (s64)ran)
				throttle(g, now);
		}
		if (!i || g->now.quota)
			add(g->used, ran);
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

// refill adds a quota, up to quota + burst. What was taken from the pool beyond one quota since the last refill is a
// burst. What was overrun was not in the pool.
static inline void refill(struct group *g)
{
	s64 before = g->runtime, full = g->now.quota + g->now.burst, after = before + (s64)g->now.quota;
	s64 burst = g->snap - (s64)g->now.quota - (before > 0 ? before : 0);

	if (burst > 0) {
		g->burst_time += burst;
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
	if (!g->now.quota)
		g->mark = g->used;
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
