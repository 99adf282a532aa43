// SPDX-License-Identifier: GPL-2.0
// queue.h: on which CPUs a watched group has run in its period, and the group's queue of each of them.
//
// Problem: some figures are sums over the CPUs of a group: its use, the runtime that its CPUs have, and when the first
// of them is throttled. A walk over all CPUs of the machine would make a group with one thread cost as much as the
// largest one, in interrupt context. And the kernel keeps the queues of a group in an array up to 7.1, and in per-CPU
// memory from then on.
//
// Approach: where the kernel accounts for a CPU's runtime of a group (sched_stat_runtime) the program marks the CPU in
// the group, once a period, and keeps the addresses of the group's queue and entity. A walk visits marked CPUs only, at
// most 64. The period's end removes a mark. The sum of an entity up to the last reading is kept with the mark, so that
// the next walk finds what one walk leaves out.
//
// Known limits: of a group that runs on more than 64 CPUs in a period, each period's use has the time of 64 of them
// up to that period's end, and that of the others up to an earlier one; its throttles are not foreseen.
// What a CPU runs of a group without a quota is counted when the group runs there with one again.

#define MOST 64 // CPUs that one walk looks at

const volatile u32 words = 1; // of a mask that are in use

struct queue_key {
	u64 group;
	u64 cpu;
};

struct queue {
	u64 address;
	u64 entity; // that stands for the group in the queue above
	u64 sum;    // CPU time of the entity, when last read
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, struct queue_key);
	TYPE(value, struct queue);
} queues SEC(".maps");

// recent is a group whose runtime this CPU has accounted for lately. It is looked up once a period, and once a tick where
// the pool may not last. A CPU also accounts for another one, whose queue it has locked, when it wakes a task there.
struct recent {
	u64 group;
	u64 tick;
	u64 expires;
	u32 cpu;
	u32 active; // CPUs of the group; 0: the group is not watched
};

#define RECENT_BITS 4

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 2 << RECENT_BITS);
	TYPE(key, u32);
	TYPE(value, struct recent);
} recents SEC(".maps");

// recent_slot spreads groups over the slots (multiplicative hashing: Knuth, The Art of Computer Programming, 6.4). A group and
// the one above it, which are accounted for in one run, never share a slot.
static inline u32 recent_slot(u64 id, u64 cpu, u32 level)
{
	return (level & 1) << RECENT_BITS | ((id + cpu) * 0xff51afd7ed558ccdull) >> (64 - RECENT_BITS);
}

u64 unplaced; // times that a queue found no room in the map

// lowest is the number of the lowest bit that is set (by a de Bruijn sequence: Leiserson et al., 1998).
static inline u32 lowest(u64 mask)
{
	static const u8 places[64] = {0,  1,  48, 2,  57, 49, 28, 3,  61, 58, 50, 42, 38, 29, 17, 4,  62, 55, 59, 36, 53, 51,
				      43, 22, 45, 39, 33, 30, 24, 18, 12, 5,  63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
				      44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,  13, 8,  7,  6};

	return places[((mask & -mask) * 0x03f79d71b4cb0a89ull) >> 58];
}

// walk is one over the active CPUs of a group. It is kept in a map, one a CPU, and each step of it is a function
// that the verifier checks once: it assumes any value for data of a map, and carries nothing from one step to the
// next.
struct walk {
	u64 mask;  // CPUs of the word that are to come
	u64 taken; // that are no longer active
	u32 word;
	u32 left; // words, this one included
	u64 sum;  // of the answers
	u64 take; // the marks of CPUs for which the answer is 1
	u64 busy; // the end of a period is accounted on this CPU (close in period.h)
};

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct walk);
} walks SEC(".maps");

static inline struct walk *walk_of(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&walks, &only);
}

// busy says whether this CPU accounts for the end of a period. With PREEMPT_RT the period's timer fires in a thread
// (kernel/time/hrtimer.c, hrtimer_run_softirq), which may be interrupted: what runs in the interrupt leaves the walk and
// its sums alone. All other programs walk with interrupts off.
static inline bool busy(void)
{
	struct walk *w = walk_of();

	return !w || *(volatile u64 *)&w->busy;
}

// done finishes a word of the bitmap.
static inline void done(struct walk *w, struct group *g)
{
	if (w->take && w->taken)
		add(&g->active[w->word & (WORDS - 1)], -w->taken);
	w->taken = 0;
}

// go_on calls a function for the next active CPU of a group, and says whether there may be more. The function answers 1
// or 0.
static inline int go_on(u64 id, int (*look)(u64 id, u64 cpu))
{
	struct walk *w = walk_of();
	struct group *g;

	if (!w)
		return 0;
	if (w->mask) {
		if (look(id, w->word * 64 + lowest(w->mask))) {
			w->sum++;
			w->taken |= w->mask & -w->mask;
		}
		w->mask &= w->mask - 1;
		return 1;
	}
	g = bpf_map_lookup_elem(&groups, &id);
	if (!g)
		return 0;
	done(w, g);
	if (w->left <= 1)
		return 0;
	w->left--;
	w->word = w->word + 1 < words ? w->word + 1 : 0;
	w->mask = g->active[w->word & (WORDS - 1)];
	return 1;
}

// walk steps over the active CPUs of a group, over MOST at least if there are so many, and returns the sum of the
// answers. With take, CPUs for which the answer is 1 are no longer active.
static inline u64 walk(struct group *g, u64 id, bool take, int (*next)(u64 id))
{
	struct walk *w = walk_of();

	if (!w)
		return 0;
	w->word = g->first & (WORDS - 1);
	w->left = words;
	w->take = take;
	w->taken = w->sum = 0;
	w->mask = g->active[w->word & (WORDS - 1)];
	for (u32 i = 0; i < MOST + WORDS; i++)
		if (!next(id))
			return w->sum;
	done(w, g);
	if (take)
		g->first = w->word; // the next walk begins where this one ends
	return w->sum;
}

static inline struct queue *queue_of(u64 id, u64 cpu)
{
	struct queue_key key = {.group = id, .cpu = cpu};

	return bpf_map_lookup_elem(&queues, &key);
}

// place keeps the addresses of a group's queue of a CPU. What it ran before belongs to no period.
static noinline int place(struct group *g, u64 id, u64 cpu, u64 queue, u64 entity)
{
	struct queue_key key = {.group = id, .cpu = cpu};
	struct queue fresh = {queue, entity, READ((struct sched_entity *)entity, sum_exec_runtime)};

	if (bpf_map_update_elem(&queues, &key, &fresh, BPF_ANY)) {
		add(&unplaced, 1);
		g->unplaced = 1;
		g->end = 0;
		return 0;
	}
	add(&g->outside, fresh.sum);
	return 1;
}

// mark adds a CPU to the active ones of a group, if the group is watched. The program that sets this bit has the CPU's
// queue locked, so an addition sets it: kernels before 5.12 have no atomic or.
global int mark(u64 queue, u64 entity, u32 slot)
{
	struct task_group *tg = READ((struct cfs_rq *)queue, tg);
	u64 id = group_of(tg), cpu = cpu_of((struct cfs_rq *)queue), bit = 1ull << cpu % 64;
	struct recent *r = bpf_map_lookup_elem(&recents, &slot);
	struct group *g = bpf_map_lookup_elem(&groups, &id);
	u32 word = cpu / 64 & (WORDS - 1);
	struct queue *own;

	if (!r)
		return 0;
	r->group = id;
	r->cpu = cpu;
	r->tick = bpf_jiffies64();
	r->expires = READ(tg, cfs_bandwidth.period_timer._softexpires);
	r->active = 0;
	if (!g || cpu >= 64 * WORDS)
		return 0;
	own = queue_of(id, cpu);
	if ((!own || own->address != queue) && !place(g, id, cpu, queue, entity))
		return 0;
	if (!(g->known[word] & bit)) // also of a queue that is there since an earlier watch (forgetQueues in probe.go)
		add(&g->known[word], bit);
	if (!(g->active[word] & bit)) {
		if (own) { // what it ran unmarked it ran without a limit, in no period
			u64 sum = READ((struct sched_entity *)entity, sum_exec_runtime);

			if (sum != own->sum)
				add(&g->outside, sum - own->sum);
			own->sum = sum;
		}
		add(&g->active[word], bit);
		add(&g->actives, 1);
	}
	r->active = g->actives ? g->actives : 1;
	return 0;
}

// nested is for a task with more levels above it than are looked at: no CPU is marked for it in groups further up. What
// these use is not known then, so that nothing takes the part that is seen for the whole (correct in policy/grant.go).
global int nested(u64 group)
{
	struct cgroup *c = READ((struct task_group *)group, css.cgroup);
	s32 level = READ(c, level);

	for (u32 i = 1; i <= TOPMOST; i++) {
		struct group *g;
		u64 id;

		if ((s32)i + DEPTH > level)
			return 0;
		id = ancestor(c, i);
		g = bpf_map_lookup_elem(&groups, &id);
		if (g) {
			g->unplaced = 1;
			g->end = 0;
		}
	}
	return 0;
}

// recount counts the active CPUs of a group that is marked on this one: others may have been added.
global int recount(u64 id, u32 slot)
{
	struct recent *r = bpf_map_lookup_elem(&recents, &slot);
	struct group *g = bpf_map_lookup_elem(&groups, &id);

	if (!r)
		return 0;
	r->tick = bpf_jiffies64();
	r->active = g && g->actives ? g->actives : 1;
	return 0;
}
