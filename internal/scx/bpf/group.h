// SPDX-License-Identifier: GPL-2.0
// group.h: what the scheduler knows of each control group: its class, its share, and its place below the limited ones.
//
// The kernel's callback (cgroup_init) makes the entry of each group of the cpu controller, and the entry ends with the group.
// User space writes to `settings` what the kernel does not know, and increments `generation` (program apply): then values
// that depend on the tree above a group are computed again at their next use. A group's share depends on the other runnable
// groups, which change with every other wake-up: `weights` counts these changes, and a share is a millisecond old at most.

#define LEVELS 12	   // looked at, from a group upwards
#define BUCKETS 24	   // as in probe/bpf/throttle.bpf.c
#define ONE (1 << 20)	   // a share of everything
#define LEAST (ONE / 1024 / cpus) // a group with less would wait longer than the kernel's watchdog
#define TASK_WEIGHT 100	   // of a task beside the groups of its group
#define TOP_WEIGHT 1000	   // of all tasks of the root: they come and go too often for all shares to follow
#define SHARE_AGE 1000000  // how old a share may be; the kernel's own follow a load average that is slower still

enum { CLASS_INHERITED, CLASS_ONLINE, CLASS_OFFLINE };

struct bandwidth {
	u64 quota; // 0: none
	u64 period;
	u64 burst;
};

struct setting {
	u32 class;
	u32 expels;  // with a class: no offline task runs beside its tasks on a core
	u32 limited; // the limit is in force, whatever the kernel's files say
	struct bandwidth limit;
};

// group: the first part is what user space reads (Counters in counters.go).
struct group {
	u64 used;      // CPU time of the group's tasks; while it has a limit, also of those below
	u64 periods;   // nr_periods of cpu.stat
	u64 throttled; // nr_throttled
	u64 wall;      // time throttled
	u64 begins;    // throttles
	u64 unreported; // of these: the ring was full
	u64 bursts;    // nr_bursts
	u64 burst_time;
	u64 last; // used in the last period that is over
	u64 peak; // the most that was used in one
	u64 lengths[BUCKETS]; // throttles that ended, by length

	struct bpf_timer timer;
	u64 id;
	u64 parent;
	u64 generation; // of the tree, when what follows was worked out
	u64 above;	// the nearest group above that has a limit
	u64 share;
	u64 weights; // when the share was worked out
	u64 weighed; // and at what time
	u32 offline;
	u32 expels;

	u32 weight;
	u32 tasks;    // that can run
	u32 runnable; // and groups below that have such tasks
	u32 below;    // the weights of these groups
	u64 vtime;

	struct bandwidth now;  // in force
	struct bandwidth file; // what the kernel's files say
	s64 runtime;
	s64 snap; // the runtime after the last refill
	u64 expires;
	u64 since; // when this throttle began
	u64 mark;  // what was used when this period began
	u32 standing;
	u32 active; // the timer runs
	u32 idle;   // nothing was used since it last fired
	u32 poked;  // it is to release what stands, and no period is over
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, u64);
	TYPE(value, struct group);
} groups SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, u64);
	TYPE(value, struct setting);
} settings SEC(".maps");

const volatile u32 cpus = 1;
u64 generation = 1; // of classes and limits
u64 weights = 1;    // of what wants to run
u64 top;	    // the root's id

#define add(counter, n) __sync_fetch_and_add(&(counter), n)

static inline struct group *group_at(u64 id)
{
	return bpf_map_lookup_elem(&groups, &id);
}

// direct is the weight of a group's own tasks beside the groups below it.
static inline u32 direct(struct group *g)
{
	return g->id == top ? TOP_WEIGHT : g->tasks * TASK_WEIGHT;
}

static inline u32 total(struct group *g)
{
	return g->below + direct(g);
}

// resolve computes the values that depend on the groups above. Two CPUs may do so at a time, and get the same.
noinline int resolve(u64 of)
{
	u64 now = generation, above = 0, id;
	struct group *g = group_at(of), *up = g;
	u32 class = CLASS_INHERITED, expels = 0;

	if (!g || g->generation == now)
		return 0;
	for (int i = 0; i < LEVELS && up; i++) {
		struct setting *s;

		id = up->id;
		s = bpf_map_lookup_elem(&settings, &id);
		if (class == CLASS_INHERITED && s) {
			class = s->class;
			expels = s->expels;
		}
		if (!above && i && up->now.quota)
			above = id;
		up = group_at(up->parent);
	}
	g->above = above;
	g->offline = class == CLASS_OFFLINE;
	g->expels = class == CLASS_ONLINE && expels;
	g->generation = now;
	return 0;
}

// weigh computes the share of a group of which a task runs.
noinline int weigh(u64 of, u64 at)
{
	u64 now = weights, share = ONE;
	struct group *g = group_at(of), *up = g;
	u32 part;

	if (!g)
		return 0;
	part = direct(g);
	for (int i = 0; i < LEVELS && up; i++) {
		u32 all = total(up);

		if (all > part)
			share = share * part / all;
		part = up->weight;
		up = group_at(up->parent);
	}
	g->share = share > LEAST ? share : LEAST;
	g->weights = now;
	g->weighed = at;
	return 0;
}

static inline void fresh(struct group *g)
{
	if (g->generation != generation)
		resolve(g->id);
}

// group_of is a task's group. A task of the root, and of an autogroup, is the root's.
static noinline struct group *group_of(struct task_struct *p)
{
	struct task_group *tg = p->sched_task_group;
	struct cgroup *c = tg ? tg->css.cgroup : NULL;
	struct group *g;
	u64 id = top;

	asm volatile("" : "+r"(id)); // or the two loads become one, of either pointer, which the verifier refuses
	if (c)
		id = c->kn->id;
	g = group_at(id);
	if (!g)
		g = group_at(top);
	if (g)
		fresh(g);
	return g;
}

// wake counts a runnable task. With its first runnable task the group takes part in the share of the group above.
noinline int wake(u64 id)
{
	struct group *g = group_at(id);

	if (!g)
		return 0;
	add(g->tasks, 1);
	if (g->below && id != top)
		add(weights, 1);
	for (int i = 0; i < LEVELS && !add(g->runnable, 1); i++) {
		u32 weight = g->weight;

		g = group_at(g->parent);
		if (!g)
			break;
		add(g->below, weight);
		add(weights, 1);
	}
	return 0;
}

// rest is wake's opposite.
noinline int rest(u64 id)
{
	struct group *g = group_at(id);

	if (!g)
		return 0;
	add(g->tasks, -1);
	if (g->below && id != top)
		add(weights, 1);
	for (int i = 0; i < LEVELS && add(g->runnable, -1) == 1; i++) {
		u32 weight = g->weight;

		g = group_at(g->parent);
		if (!g)
			break;
		add(g->below, -weight);
		add(weights, 1);
	}
	return 0;
}

static inline void reweigh(struct group *g, u32 weight)
{
	u32 before = g->weight;
	struct group *up = group_at(g->parent);

	g->weight = weight;
	if (g->runnable && up)
		add(up->below, weight - before);
	add(weights, 1);
}
