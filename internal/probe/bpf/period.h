// SPDX-License-Identifier: GPL-2.0
// period.h: what each watched group used in each of its own periods.
//
// The kernel sums up the CPU time of a group on each CPU (sum_exec_runtime of the group's own entity) up to the last
// tick there, and the group's own timer says when its period is over: the sums of its active CPUs (queue.h) are read
// then, and nothing at a switch.
//
// While recording is set, each period is a record in a ring of its own, which user space empties now and then: nobody is
// woken for it, and nothing is read of a group for it.
//
// CPUs may have a debt after they overran their slices: a tick shows it, and their next slice is smaller by it
// (kernel/sched/fair.c, __assign_cfs_rq_runtime), so that it counts in the period that pays. A write of quota or burst
// cancels the debt (kernel/sched/core.c, tg_set_cfs_bandwidth). A CPU with a debt, or that runs the group as the period
// ends, stays among the active ones.

#define SECOND 1000000000ULL
#define MOST_US 0xffffffffULL
#define RUNTIME_INF (~0ULL) // kernel/sched/sched.h: no quota

static void *over;	     // sched_cfs_period_timer
volatile u64 recording;	     // user space alone writes it
u64 unrecorded;		     // periods for which the ring had no room

// period is one record (decodePeriod in record.go). Times are in microseconds, but for the end.
struct period {
	u64 group;
	u64 end; // CLOCK_MONOTONIC, in ns
	u32 used;
	u32 quota; // in force as the period ends
	u32 lost;  // wall time that the group was throttled
	u16 throttles;
	u16 count; // of periods: more than one where the timer was late, or its call ended several
};
_Static_assert(sizeof(struct period) == 32, "periodSize");

struct {
	NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 1 << 18);
} recorded SEC(".maps");

// limit_of is the quota by which uses are counted.
static inline u64 limit_of(u64 id, struct task_group *tg)
{
	struct order *o = bpf_map_lookup_elem(&orders, &id);

	return o && o->limit ? o->limit : READ(tg, cfs_bandwidth.quota);
}

// share is the class of a use: sixteenths of the limit, rounded up.
static inline u32 share(u64 limit, u64 use)
{
	u64 n;

	if (!limit)
		return 0;
	n = (use * 16 + limit - 1) / limit;
	return n < USES ? n : USES - 1;
}

// second takes the mean over each second beside the use of each period. After an idle time a new second begins.
static inline void second(struct group *g, u64 sum, u64 end)
{
	u64 took = end - g->second_from, use;

	if (g->second_from && took < SECOND)
		return;
	if (g->second_from && took < 2 * SECOND) {
		use = (sum - g->second_sum) / (took / 1000) * (SECOND / 1000);
		if (use > g->second_peak)
			g->second_peak = use;
	}
	g->second_from = end;
	g->second_sum = sum;
}

// over_since counts the periods that the kernel has ended by now, and those that it ends in this call of the timer, since the
// last call. They are more than one where the call is late. And where the last call lasted beyond a period's end, it ended that
// period too and granted its quota (kernel/sched/fair.c, sched_cfs_period_timer): no call begins for it.
static inline u64 over_since(struct group *g, struct task_group *tg, u64 late, u64 length)
{
	u32 expired = (u32)READ(tg, cfs_bandwidth.nr_periods) + 1 + (length ? late / length : 0), n = expired - g->expired;

	g->expired = expired;
	return n && n <= 0xffff ? n : 1;
}

// whole says whether all use since the last expiry was in the period that ends. The timer stops while the group is
// idle, and while it has no quota. The expiry after the quota was removed shows that, but there is none when the group
// was idle at that time. What it used then is in no period already (mark), but on CPUs of a large machine that no walk
// has reached since. A use above the machine's CPUs in the periods shows that.
static inline bool whole(struct group *g, u64 sum, u64 end, u64 length)
{
	return g->end && (end - g->end <= length || sum - g->sum <= cpus * length);
}

// lost_until is the wall time that throttles have taken up to an instant, with the throttle that lasts, or that has
// ended and nobody has seen it.
static inline u64 lost_until(u64 id, struct group *g, struct task_group *tg, u64 end)
{
	struct throttle *t = bpf_map_lookup_elem(&standing, &id);
	u64 latest;

	if (!t)
		return g->wall;
	latest = latest_end(t, &tg->cfs_bandwidth);
	if (end > latest)
		end = latest;
	return g->wall + (end > t->since ? end - t->since : 0);
}

// record sends the period that ends now. count is 0 where it is not known which period the use belongs to. The first
// period of a group that is seen here only says from where to count. A use is the difference of two rounded sums, so
// that no rounding adds up.
static inline void record(u64 id, struct group *g, struct task_group *tg, u64 sum, u64 end, u64 quota, u64 count)
{
	u64 lost = lost_until(id, g, tg, end), begins = g->begins;
	struct period *p = NULL;

	if (lost < g->recorded_lost) // the throttle had ended, which nobody saw in time
		lost = g->recorded_lost;
	if (count && g->recorded && g->recorded == g->end) {
		p = bpf_ringbuf_reserve(&recorded, sizeof(*p), 0);
		if (!p)
			add(&unrecorded, 1);
	}
	if (p) {
		p->group = id;
		p->end = end;
		p->used = sum / 1000 - g->sum / 1000;
		p->quota = quota / 1000 < MOST_US ? quota / 1000 : MOST_US;
		p->lost = lost / 1000 - g->recorded_lost / 1000;
		p->throttles = begins - g->recorded_begins;
		p->count = count;
		bpf_ringbuf_submit(p, BPF_RB_NO_WAKEUP);
	}
	g->recorded = end;
	g->recorded_begins = begins;
	g->recorded_lost = lost;
}

static inline void close(u64 id, struct group *g, struct task_group *tg, u64 end)
{
	u64 length = READ(tg, cfs_bandwidth.period), quota = READ(tg, cfs_bandwidth.quota), limit = limit_of(id, tg);
	u64 now = bpf_ktime_get_ns(), n = over_since(g, tg, now > end ? now - end : 0, length);
	bool uncounted = quota == RUNTIME_INF || g->unplaced;
	struct walk *w = walk_of();
	struct sums *s = sums();
	u64 sum, owes;
	s64 above;

	if (!s || !w)
		return;
	w->busy = 1;
	barrier();
	*s = (struct sums){.ends = 1};
	add(&g->actives, -(u64)walk(g, id, true, tally));
	sum = g->sum + s->used;
	owes = s->owed;
	barrier();
	w->busy = 0;
	if (g->length != length)
		g->peak = 0;
	if (uncounted || !whole(g, sum, end, n * length)) {
		n = 0;
	} else {
		g->periods++;
		g->used = (sum - g->sum) / n;
		above = sum - g->sum + g->owed - owes - n * limit;
		if (above > 0)
			g->above += above;
		g->uses[share(limit, g->used)] += n;
		if (g->used > g->peak && g->length == length) // else it began with the old length
			g->peak = g->used;
	}
	g->length = length;
	second(g, sum, end);
	if (recording)
		record(id, g, tg, sum, end, quota, n);
	g->sum = sum;
	g->owed = owes;
	g->end = uncounted ? 0 : end;
}

SEC("tp_btf/hrtimer_expire_entry") int hrtimer_expire_entry(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct task_group *tg;
	struct group *g;
	u64 id;

	if (!over) { // each group has such a timer, and all call the same function
		tg = READ(bpf_get_current_task(), sched_task_group);
		over = READ(tg, cfs_bandwidth.period_timer.function);
	}
	if (timer->function != over)
		return 0;
	tg = (void *)timer - FIELD((struct task_group *)0, cfs_bandwidth.period_timer, FIELD_OFFSET);
	id = group_of(tg);
	g = bpf_map_lookup_elem(&groups, &id);
	if (g)
		close(id, g, tg, READ(timer, _softexpires));
	return 0;
}
