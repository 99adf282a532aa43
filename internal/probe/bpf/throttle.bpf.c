// SPDX-License-Identifier: GPL-2.0
// throttle.bpf.c: begin and end of each throttle of the watched groups.
//
// kernel/sched/fair.c throttles a group's queue of one CPU (throttle_cfs_rq) when its slice is used up and the group's
// pool (cfs_bandwidth.runtime) is empty. That happens when a task is put back or picked, so that the next sched_switch
// shows it, and when a task is enqueued on a CPU without runtime (check_enqueue_throttle), so that a wake-up shows it,
// without any switch. Since 6.18 tasks are throttled one by one, which a switch always shows. The end shows in the
// first switch to a task of the group.
//
// One throttle is one standing entry, whatever the number of CPUs: the CPU that inserts it reports it, the CPU that
// deletes it accounts it. Insertion and deletion are atomic on every kernel; compare-and-swap needs 5.12.
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#include "group.h"
#include "standing.h"

// order is what user space says of a group.
struct order {
	u64 limit; // the quota by which uses are counted, where another quota is in force: a raise does not change the limit; 0: none
	u64 suppressed; // its throttles are counted, and no event is sent
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 8192);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64);
	TYPE(value, struct order);
} orders SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 1 << 18);
} events SEC(".maps");

#include "queue.h"

enum kind { BEGIN = 1, END = 2, DRY = 3 };

// event is what user space reads (decode in event.go).
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
	u64 held;
};
_Static_assert(sizeof(struct event) == 104, "eventSize");

// filling is one of a pool that was seen to run dry.
struct filling {
	u64 expires;
	u64 runtime;
	u64 lasts; // until then
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, u64);
	TYPE(value, struct filling);
} foreseen SEC(".maps");

const volatile u64 interval = 5000000;	// between two events of a group in the long run
const volatile u64 advance = 100000000; // how far a group may be ahead of that

u64 begun, ended;	// throttles inserted and deleted here
volatile u64 forgotten; // and deleted by user space, which alone writes it
u64 limited, full;	// events that were not sent: over the rate, and for want of room

// dry says whether a group's own queue of one CPU is throttled. A queue with new runtime is about to be released
// (distribute_cfs_runtime), by an interrupt of another CPU since 6.3.
static inline bool dry(struct cfs_rq *q)
{
	return READ_BITS(q, throttled) && READ(q, runtime_remaining) <= 0;
}

// one_by_one says whether tasks are throttled one by one, on their way to user space (6.18), and not with their
// queue.
static inline bool one_by_one(void)
{
	return HAS(task_struct___throttled, throttled);
}

// occupied says whether any task waits in a queue.
static inline bool occupied(struct cfs_rq *q)
{
	if (HAS(cfs_rq___queued, nr_queued))
		return READ((struct cfs_rq___queued *)q, nr_queued) > 0;
	return READ((struct cfs_rq___running *)q, nr_running) > 0;
}

// running_in is the running entity of a group's queue.
static inline struct sched_entity *running_in(struct cfs_rq *q)
{
	if (HAS(cfs_rq___level, h_curr))
		return READ((struct cfs_rq___level *)q, h_curr);
	return READ(q, curr);
}

// lasts says whether a throttle still lasts. The group got runtime when the queue on which it was seen was released, or
// throttled again, or when the period is over.
static inline bool lasts(struct throttle *t, u64 expires)
{
	struct cfs_rq *q = (void *)t->origin;

	return dry(q) && (!t->clock || t->clock == OPTIONAL(q, throttled_clock, 0)) && t->expires == expires;
}

// allowed is a token bucket in one number (the generic cell rate algorithm, ITU-T I.371).
static inline bool allowed(u64 *next, u64 now)
{
	u64 due = *next > now ? *next : now;

	if (due - now > advance)
		return false;
	*next = due + interval;
	return true;
}

static inline void facts(struct event *e, struct cfs_bandwidth *b)
{
	e->quota = READ(b, quota);
	e->period = READ(b, period);
	e->runtime = OPTIONAL(b, runtime, 0);
	e->burst = OPTIONAL((struct cfs_bandwidth___burst *)b, burst, 0);
	e->snap = OPTIONAL((struct cfs_bandwidth___snap *)b, runtime_snap, UNKNOWN);
	e->expires = OPTIONAL(b, period_active, 0) ? OPTIONAL(b, period_timer._softexpires, 0) : 0;
	e->periods = (u32)OPTIONAL(b, nr_periods, 0); // an int, which turns over after 25 days of periods of 1 ms
}

#include "balance.h"

// report sends an event with its facts, and says whether it was sent. The reader is woken each time: it may not have
// read the ends before, and the kernel wakes by itself only a reader that has read all.
static inline bool report(struct group *g, u64 id, u32 kind, struct cfs_rq *q, u64 now, u64 since)
{
	struct task_group *tg = READ(q, tg);
	s64 used = UNKNOWN;
	u64 held = 0;
	struct order *o;
	struct sums *s;
	struct event *e;

	o = bpf_map_lookup_elem(&orders, &id);
	if (o && o->suppressed)
		return false;
	if (!allowed(kind == BEGIN ? &g->due : &g->due_ahead, now)) {
		add(&limited, 1);
		if (kind == BEGIN)
			add(&g->dropped, 1);
		return false;
	}
	s = sums();
	if (balance(id) && s) {
		used = s->used;
		held = s->held;
	}
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		add(&full, 1);
		if (kind == BEGIN)
			add(&g->dropped, 1);
		return false;
	}
	e->group = id;
	e->at = now;
	e->since = since;
	e->kind = kind;
	e->cpu = cpu_of(q);
	facts(e, &tg->cfs_bandwidth);
	e->used = used;
	e->held = held;
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
	return true;
}

// bucket is the power of two of a length in microseconds. It is global for the verifier, which would follow each of its answers
// through all that comes after a call.
global u32 bucket(u64 ns)
{
	u64 us = ns / 1000;
	u32 n = 0;

	unroll for (u32 i = 1; i < BUCKETS; i++)
		if (us >> i)
			n = i;
	return n;
}

// finish ends the throttle, accounts it, and sends an event without waking the reader.
static noinline int finish(struct cfs_bandwidth *b, u64 id, u64 at)
{
	struct throttle *t = bpf_map_lookup_elem(&standing, &id), was;
	struct group *g;
	struct event *e;
	u64 length, latest;
	u32 n;

	if (!t)
		return 0;
	was = *t;
	latest = latest_end(&was, b);
	if (at > latest)
		at = latest;
	if (bpf_map_delete_elem(&standing, &id))
		return 0; // another CPU was first
	add(&ended, 1);
	g = bpf_map_lookup_elem(&groups, &id);
	if (!g)
		return 0;
	length = at > was.since ? at - was.since : 0;
	add(&g->ends, 1);
	add(&g->wall, length);
	n = bucket(length);
	if (n < BUCKETS)
		add(&g->lengths[n], 1);
	if (!was.sent)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		add(&full, 1);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->group = id;
	e->at = at;
	e->since = was.since;
	e->kind = END;
	e->cpu = bpf_get_smp_processor_id();
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

// begin reports a throttle of the group that a queue belongs to, unless it is reported already. An early one has not
// begun yet, so that the queue does not know its time.
global int begin(u64 queue, bool early)
{
	struct cfs_rq *q = (void *)queue;
	struct task_group *tg = READ(q, tg);
	struct throttle fresh = {}, *t;
	struct group *g;
	u64 id = group_of(tg);

	g = bpf_map_lookup_elem(&groups, &id);
	if (!g)
		return 0;
	fresh.since = bpf_ktime_get_ns();
	fresh.origin = (u64)q;
	fresh.clock = early ? 0 : OPTIONAL(q, throttled_clock, 0);
	fresh.expires = OPTIONAL(tg, cfs_bandwidth.period_timer._softexpires, 0);
	fresh.ends = OPTIONAL(tg, cfs_bandwidth.nr_throttled, 0);
	t = bpf_map_lookup_elem(&standing, &id);
	if (t) {
		if (lasts(t, fresh.expires))
			return 0;
		// It ended unseen, with the period or by a write since.
		finish(&tg->cfs_bandwidth, id, t->expires < fresh.since ? t->expires : fresh.since);
	}
	if (bpf_map_update_elem(&standing, &id, &fresh, BPF_NOEXIST))
		return 0; // another CPU was first
	add(&begun, 1);
	g = bpf_map_lookup_elem(&groups, &id);
	if (!g) { // forgotten in the meantime (Probe.forget), maybe with what stood of it before this did
		if (!bpf_map_delete_elem(&standing, &id))
			add(&ended, 1);
		return 0;
	}
	bpf_map_delete_elem(&foreseen, &id);
	add(&g->begins, 1);
	if (report(g, id, BEGIN, q, fresh.since, fresh.since)) {
		t = bpf_map_lookup_elem(&standing, &id);
		if (t)
			t->sent = 1;
	}
	return 0;
}

// stuck finds the groups above a task whose own queue is throttled, and reports them from the top down: a refill of a
// lower one is useless before. A queue in which no task waits harms no task.
static inline void stuck(struct task_struct *p, bool waits)
{
	struct sched_entity *se = &p->se;
	struct cfs_rq *found[DEPTH], *q;

	unroll for (int i = 0; i < DEPTH; i++) {
		found[i] = NULL;
		if (!se)
			continue;
		q = READ(se, cfs_rq);
		se = READ(se, parent);
		if (dry(q) && (waits || (!one_by_one() && occupied(q))))
			found[i] = q;
	}
	unroll for (int i = DEPTH - 1; i >= 0; i--)
		if (found[i])
			begin((u64)found[i], false);
}

#include "relief.h"

// runnable says whether a task that was switched away from is still runnable. A task that is throttled by itself (6.18)
// runs on in the kernel while its queue is throttled, and may have gone to sleep there.
static inline bool runnable(struct task_struct *p)
{
	struct task_struct___throttled *one = (void *)p;
	struct sched_entity___delayed *se = (void *)&p->se;

	if (one_by_one())
		return READ_BITS(one, throttled);
	return p->on_rq && !(HAS(sched_entity___delayed, sched_delayed) && READ(se, sched_delayed));
}

// throttle_count counts the throttled queues of a task's own group and of all above it.
SEC("tp_btf/sched_switch") int sched_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	if (prev->se.cfs_rq->throttle_count > 0)
		stuck(prev, runnable(prev));
	if (begun - ended != forgotten)
		relieved(next);
	return 0;
}

// The programs from here on that handle wake-ups and migrations are loaded below 6.18 only (probe.go, oneByOne).
static inline void woken(struct task_struct *p)
{
	if (p->se.cfs_rq->throttle_count > 0)
		stuck(p, true);
}

SEC("tp_btf/sched_wakeup") int sched_wakeup(u64 *ctx)
{
	woken((void *)ctx[0]);
	return 0;
}

SEC("tp_btf/sched_wakeup_new") int sched_wakeup_new(u64 *ctx)
{
	woken((void *)ctx[0]);
	return 0;
}

// A queued task that is moved to another CPU is enqueued there after this, and no tracepoint follows
// check_enqueue_throttle, so its result is predicted here. A sleeping task is seen when it wakes.
SEC("tp_btf/sched_migrate_task") int sched_migrate_task(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	struct task_group *tg = p->sched_task_group;
	s32 cpu = ctx[1];

	if (!p->on_rq)
		return 0;
	unroll for (int i = 0; i < DEPTH; i++) {
		struct cfs_rq **queues, *q = NULL; // 7.2 has no such array, and does not load this program

		if (!tg || !tg->parent)
			return 0;
		if (!tg->cfs_bandwidth.runtime) {
			queues = ((struct task_group___arrays *)tg)->cfs_rq;
			bpf_probe_read_kernel(&q, sizeof(q), queues + cpu);
			if (dry(q))
				begin((u64)q, false);
			else if (READ(q, runtime_enabled) && READ(q, runtime_remaining) <= 0 && !occupied(q))
				begin((u64)q, true);
		}
		tg = tg->parent;
	}
	return 0;
}

#include "period.h"
#include "ahead.h"
