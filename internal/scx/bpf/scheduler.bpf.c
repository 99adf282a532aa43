// SPDX-License-Identifier: GPL-2.0
// scheduler.bpf.c: online tasks before offline ones, on the whole machine.
//
// Tasks that find no idle CPU wait in one of two queues for all CPUs, online or offline, in the order of their group's
// virtual time: what it ran, divided by its share. A CPU takes offline tasks only when no online task waits that may
// run there, and gives them up as soon as one does. Three things bound that: a floor, so that the kernel's watchdog does
// not end the scheduler for a starved offline task; limits (bandwidth.h), which stop tasks of both classes; and with
// `expel`, no offline task runs on a CPU while a sibling thread of its core runs an online one.
//
// A group is offline if user space says so of it or of one above (group.h). All else is online: also what belongs to the
// node and the kernel's threads.
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#include "group.h"
#include "bandwidth.h"

#define ONLINE ((1ULL << 62) | 1)
#define OFFLINE ((1ULL << 62) | 2)
#define CPUS 1024
#define SLOT(cpu) ((u32)(cpu) & (CPUS - 1))
#define LAG 50000000	  // of CPU time that a group may be behind its share
#define LEAD (5000000000ULL * cpus) // of virtual time that it may be ahead

const volatile u32 expel = 0;
const volatile u16 sibling[CPUS]; // the next thread of the same core, around; itself if it has none
const volatile u64 slice_offline = 3000000;
const volatile u64 floor_slice = 3000000;
const volatile u64 floor_rest = 332 * 64; // the floor's time, 64 times, by which it rests after it: 3 ms in 1 s

enum running { NOTHING, RUNS_ONLINE, RUNS_OFFLINE, RUNS_FLOOR };

struct cpu {
	u64 began;	 // when what runs was last charged
	u64 last;	 // when an offline task last ran
	u64 vtime;	 // of the group of what runs, when it began
	u64 since;	 // when what runs began to
	u64 beside;	 // time that offline tasks ran beside online ones on a sibling
	u64 floored;	 // time given by the floor
	u64 floors;	 // times that it was given
	u64 owed;	 // of it: not made up for yet by rest
	u64 yields;	 // offline tasks sent away by an online one that wants the CPU
	u64 expels;	 // and by one that began on a sibling
	u64 online_time;
	u64 offline_time;
	u32 runs;
	u32 floor;   // the next offline task runs by the floor
	u32 ordered; // the next task was taken in its turn
};

struct cpu cpu[CPUS];
u64 clock[2]; // the virtual time, online and offline: the latest place in the queue of a task that began in its turn
u32 offline_cpus; // CPUs that run offline tasks and may be taken away

u32 exit_kind;
s64 exit_code;
char exit_reason[128], exit_message[256];

static inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

// turn is where a group stands in its queue: never so far behind that it would keep the others out for long, nor so far
// ahead that it would be.
static inline u64 turn(struct group *g)
{
	u64 now = clock[!!g->offline], earliest = now - (u64)LAG * ONE / g->share;

	if (before(g->vtime, earliest))
		g->vtime = earliest;
	if (before(now + LEAD, g->vtime))
		g->vtime = now + LEAD;
	return g->vtime;
}

// slice is how long a task runs at a time: in its group's turn, tasks share by their own weights (nice).
static inline u64 slice(struct task_struct *p, struct group *g)
{
	u64 base = g->offline ? slice_offline : slice_online, s = base * p->scx.weight / 100;

	return s < base / 4 ? base / 4 : s > base * 4 ? base * 4 : s;
}

// held is the group that keeps a task from running; 0: none.
static inline u64 held(struct task_struct *p, struct group *g)
{
	if (!standing || p->flags & PF_KTHREAD)
		return 0;
	return stopped(g->id);
}

// aged says whether a task has waited so long that it is to run once, whatever holds it: the kernel's watchdog ends the
// scheduler for a task that has waited for timeout_ns (kernel/sched/ext.c, check_rq_for_timeouts).
static inline bool aged(struct task_struct *p)
{
	return bpf_jiffies64() - p->scx.runnable_at > PATIENCE / tick_ns;
}

// may says whether a task that waits may run on a CPU.
static inline bool may(struct task_struct *p, s32 c)
{
	return bpf_cpumask_test_cpu(c, p->cpus_ptr) && !(p->migration_disabled && scx_bpf_task_cpu(p) != c);
}

// beside is since when an online task has run on a sibling; 0: none does.
static inline u64 beside(s32 c)
{
	u32 other = SLOT(c);

	for (int i = 0; i < 7; i++) {
		other = SLOT(sibling[other]);
		if (other == SLOT(c))
			return 0;
		if (cpu[other].runs == RUNS_ONLINE)
			return cpu[other].since;
	}
	return 0;
}

// expelled says whether no offline task is to run on a CPU, but by the floor.
static inline bool expelled(s32 c)
{
	return expel && beside(c);
}

// offer puts a CPU that runs an offline task among those that may be taken away.
static inline void offer(struct cpu *own)
{
	own->runs = RUNS_OFFLINE;
	add(offline_cpus, 1);
}

// take takes it out again. Only one who asks gets it.
static inline bool take(struct cpu *own)
{
	if (own->runs != RUNS_OFFLINE || __sync_val_compare_and_swap(&own->runs, RUNS_OFFLINE, NOTHING) != RUNS_OFFLINE)
		return false;
	add(offline_cpus, -1);
	return true;
}

// evict takes a CPU away from an offline task, for an online one.
static inline bool evict(s32 c)
{
	struct cpu *own = &cpu[SLOT(c)];

	if (!take(own))
		return false;
	add(own->yields, 1);
	return true;
}

// find is a CPU that runs an offline task and where p may run; -1: none.
static inline s32 find(struct task_struct *p)
{
	struct bpf_iter_num it;
	s32 first = scx_bpf_task_cpu(p), found = -1;
	int *i;

	if (!offline_cpus)
		return -1;
	bpf_iter_num_new(&it, 0, cpus);
	while ((i = bpf_iter_num_next(&it))) {
		u32 c = *i + first;

		if (c >= cpus)
			c -= cpus;
		if (cpu[SLOT(c)].runs == RUNS_OFFLINE && bpf_cpumask_test_cpu(c, p->cpus_ptr) && evict(c)) {
			found = c;
			break;
		}
	}
	bpf_iter_num_destroy(&it);
	return found;
}

noinline s32 victim(struct task_struct *p TRUSTED)
{
	return find(p);
}

// wake_idle wakes an idle CPU for an offline task, one beside which no online task runs.
static inline void wake_idle(struct task_struct *p)
{
	struct bpf_iter_num it;
	int *i;

	if (!expel) {
		s32 c = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

		if (c >= 0)
			scx_bpf_kick_cpu(c, SCX_KICK_IDLE);
		return;
	}
	bpf_iter_num_new(&it, 0, cpus);
	while ((i = bpf_iter_num_next(&it))) {
		s32 c = *i;

		if (!cpu[SLOT(c)].runs && bpf_cpumask_test_cpu(c, p->cpus_ptr) && !expelled(c) && scx_bpf_test_and_clear_cpu_idle(c)) {
			scx_bpf_kick_cpu(c, SCX_KICK_IDLE);
			break;
		}
	}
	bpf_iter_num_destroy(&it);
}

noinline int rouse(struct task_struct *p TRUSTED)
{
	wake_idle(p);
	return 0;
}

// pinned is a task that cannot go elsewhere, as far as the kernel's own migrations are concerned.
static inline bool pinned(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || p->migration_disabled;
}

SEC("struct_ops/select_cpu")
s32 select_cpu(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	s32 prev = ARG(s32, 1), c;
	struct group *g = group_of(p);
	bool idle = false;

	if (!g || held(p, g) || (g->offline && expel))
		return prev;
	c = scx_bpf_select_cpu_dfl(p, prev, ctx[2], &idle);
	if (idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice(p, g), 0);
	return c;
}

SEC("struct_ops/enqueue")
void enqueue(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	u64 flags = ctx[1];
	struct group *g = group_of(p);
	u64 by;
	s32 c;

	if (!g) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_online, flags);
		return;
	}
	by = held(p, g);
	if (by) {
		scx_bpf_dsq_insert_vtime(p, by, slice(p, g), p->scx.runnable_at, flags);
		return;
	}
	if (g->offline) {
		scx_bpf_dsq_insert_vtime(p, OFFLINE, slice(p, g), turn(g), flags);
		rouse(p);
		return;
	}
	if (pinned(p) && p->flags & PF_KTHREAD) {
		c = scx_bpf_task_cpu(p);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice(p, g), evict(c) ? flags | SCX_ENQ_PREEMPT : flags | SCX_ENQ_HEAD);
		return;
	}
	c = scx_bpf_pick_idle_cpu(p->cpus_ptr, expel ? SCX_PICK_IDLE_CORE : 0);
	if (c < 0 && !pinned(p)) {
		c = victim(p);
		if (c >= 0) {
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | c, slice(p, g), flags | SCX_ENQ_PREEMPT);
			return;
		}
	}
	scx_bpf_dsq_insert_vtime(p, ONLINE, slice(p, g), turn(g), flags);
	if (c < 0 && expel)
		c = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (c >= 0) {
		scx_bpf_kick_cpu(c, SCX_KICK_IDLE);
		return;
	}
	c = scx_bpf_task_cpu(p);
	if (pinned(p) && evict(c)) {
		scx_bpf_kick_cpu(c, SCX_KICK_PREEMPT);
		return;
	}
	// An online task that is well ahead of this one gives way.
	if (cpu[SLOT(c)].runs == RUNS_ONLINE && before(g->vtime + slice_online, cpu[SLOT(c)].vtime))
		scx_bpf_kick_cpu(c, SCX_KICK_PREEMPT);
}

// sweep takes tasks of throttled groups out of a queue: as far as the first ones are concerned, the rest comes to that.
noinline int sweep(u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!standing)
		return 0;
	if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			struct group *g = group_of(p);
			u64 by = g && !aged(p) ? held(p, g) : 0;

			if (!by)
				break;
			scx_bpf_dsq_move_set_vtime(&it, p->scx.runnable_at);
			scx_bpf_dsq_move_vtime(&it, p, by, 0);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

// stays says whether what runs is still to run: nobody waits who may run here and whose turn is no later.
noinline int stays(s32 c, u64 queue, u64 vtime)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	int result = 1;

	if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			if (before(vtime, p->scx.dsq_vtime))
				break;
			if (may(p, c)) {
				result = 0;
				break;
			}
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return result;
}

// serve_floor takes the next offline task by the floor: one that has waited too long first, for the order is that of the groups,
// and one with little weight may come last for minutes.
static noinline bool serve_floor(s32 c)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool taken = false;

	if (!bpf_iter_scx_dsq_new(&it, OFFLINE, 0)) {
		while (!taken && (p = bpf_iter_scx_dsq_next(&it)))
			taken = aged(p) && may(p, c) && scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return taken || scx_bpf_dsq_move_to_local(OFFLINE);
}

// floor_due says whether offline tasks have waited long enough on a CPU. What one ran beyond its slice, to the tick that
// found it, is waited for, too, so that the floor is its share in the long run. Where many wait it rises, so that each
// of them runs before the kernel's watchdog looks at it.
static inline bool floor_due(struct cpu *own, u64 now)
{
	u64 owed = own->owed > floor_slice ? own->owed : floor_slice, rest = owed * floor_rest / 64;
	s32 waiting = scx_bpf_dsq_nr_queued(OFFLINE);

	if (waiting <= 0)
		return false;
	if (rest > PATIENCE)
		rest = PATIENCE;
	if (rest * waiting > PATIENCE * cpus)
		rest = PATIENCE * cpus / waiting;
	return now - own->last > rest;
}

// begin_floor books the rest before a floor, which makes up for those before.
static inline void begin_floor(struct cpu *own)
{
	u64 paid = (own->began - own->last) * 64 / floor_rest;

	own->owed -= own->owed < paid ? own->owed : paid;
	own->runs = RUNS_FLOOR;
	own->floors++;
}

// stay has what runs go on, for another slice. Without a switch nobody else takes note that an offline task does.
static inline void stay(struct task_struct *p, struct group *g, struct cpu *own)
{
	p->scx.slice = slice(p, g);
	own->ordered = 0;
	if (g->offline && own->runs != RUNS_OFFLINE)
		offer(own);
}

SEC("struct_ops/dispatch")
void dispatch(u64 *ctx)
{
	s32 c = ARG(s32, 0);
	struct task_struct *prev = ARG(struct task_struct *, 1);
	struct cpu *own = &cpu[SLOT(c)];
	struct group *g = prev && prev->scx.flags & SCX_TASK_QUEUED ? group_of(prev) : NULL;

	if (g && held(prev, g))
		g = NULL;
	sweep(ONLINE);
	sweep(OFFLINE);
	if (floor_due(own, bpf_ktime_get_ns())) {
		own->floor = 1;
		if (serve_floor(c))
			return;
		own->floor = 0;
	}
	own->ordered = 1;
	if (g && !g->offline && stays(c, ONLINE, turn(g))) {
		stay(prev, g, own);
		return;
	}
	if (scx_bpf_dsq_move_to_local(ONLINE))
		return;
	if (g && !g->offline) {
		stay(prev, g, own);
		return;
	}
	if (!expelled(c)) {
		if (g && stays(c, OFFLINE, turn(g))) {
			stay(prev, g, own);
			return;
		}
		if (scx_bpf_dsq_move_to_local(OFFLINE))
			return;
		if (g) {
			stay(prev, g, own);
			return;
		}
	}
	own->ordered = 0;
}

// account books what runs on a CPU up to now.
static inline void account(struct group *g, struct cpu *own, s32 c, u64 now)
{
	u64 ran = now - own->began, with;

	own->began = now;
	if ((s64)ran <= 0)
		return;
	if (g->offline) {
		own->offline_time += ran;
		own->last = now;
		if (own->runs == RUNS_FLOOR) {
			own->floored += ran;
			own->owed += ran;
		}
		with = beside(c);
		if (with && before(with, now))
			own->beside += before(with, now - ran) ? ran : now - with;
	} else {
		own->online_time += ran;
	}
	if (g->weights != weights && now - g->weighed > SHARE_AGE)
		weigh(g->id, now);
	add(g->vtime, ran * ONE / g->share);
	charge(g->id, ran, now);
}

SEC("struct_ops/running")
void running(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	struct group *g = group_of(p);
	s32 c = bpf_get_smp_processor_id();
	struct cpu *own = &cpu[SLOT(c)];
	u32 other = SLOT(c), floor = own->floor;
	u64 at;

	own->since = own->began = bpf_ktime_get_ns();
	own->floor = 0;
	if (!g)
		return;
	own->vtime = turn(g);
	at = own->ordered ? p->scx.dsq_vtime : own->vtime;
	if (before(clock[!!g->offline], at) && (own->ordered || !scx_bpf_dsq_nr_queued(g->offline ? OFFLINE : ONLINE)))
		clock[!!g->offline] = at;
	own->ordered = 0;
	if (held(p, g))
		p->scx.slice = 0; // until the next tick: it slipped by while it was being throttled
	if (g->offline) {
		if (floor) {
			begin_floor(own);
			p->scx.slice = floor_slice;
		} else {
			own->owed = 0;
			offer(own);
		}
		return;
	}
	own->runs = RUNS_ONLINE;
	if (!expel)
		return;
	for (int i = 0; i < 7; i++) {
		other = SLOT(sibling[other]);
		if (other == SLOT(c))
			break;
		if (take(&cpu[other])) {
			add(cpu[other].expels, 1);
			scx_bpf_kick_cpu(other, SCX_KICK_PREEMPT);
		}
	}
}

SEC("struct_ops/stopping")
void stopping(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	struct group *g = group_of(p);
	s32 c = bpf_get_smp_processor_id();
	struct cpu *own = &cpu[SLOT(c)];
	u32 other = SLOT(c), ran = own->runs;

	if (!g)
		return;
	account(g, own, c, bpf_ktime_get_ns());
	if (!take(own))
		own->runs = NOTHING;
	if (!expel || ran != RUNS_ONLINE || scx_bpf_dsq_nr_queued(OFFLINE) <= 0)
		return;
	for (int i = 0; i < 7; i++) {
		other = SLOT(sibling[other]);
		if (other == SLOT(c))
			break;
		if (!cpu[other].runs)
			scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
	}
}

SEC("struct_ops/tick")
void tick(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	struct group *g = group_of(p);
	s32 c = bpf_get_smp_processor_id();
	struct cpu *own = &cpu[SLOT(c)];
	u64 now = bpf_ktime_get_ns();

	if (!g)
		return;
	account(g, own, c, now);
	if (held(p, g)) {
		p->scx.slice = 0;
		return;
	}
	if (!g->offline || own->runs == RUNS_FLOOR)
		return;
	if (expelled(c)) {
		if (take(own))
			add(own->expels, 1);
		p->scx.slice = 0;
	} else if (!stays(c, ONLINE, ~0ULL >> 2)) {
		evict(c);
		p->scx.slice = 0;
	}
}

SEC("struct_ops/runnable")
void runnable(u64 *ctx)
{
	struct group *g = group_of(ARG(struct task_struct *, 0));
	u64 earliest;

	if (!g)
		return;
	earliest = clock[!!g->offline] - slice_online;
	if (!g->tasks && before(g->vtime, earliest))
		g->vtime = earliest; // a group that slept is not given what it did not use, but for one slice
	wake(g->id);
}

SEC("struct_ops/quiescent")
void quiescent(u64 *ctx)
{
	struct group *g = group_of(ARG(struct task_struct *, 0));

	if (g)
		rest(g->id);
}

// drain lets go of the tasks that wait in a group's own queue. A group that still is throttled lets go of one that has
// waited too long.
static noinline int drain(struct group *g)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, g->id, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			struct group *own = group_of(p);
			u64 by = own ? held(p, own) : 0;
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

// expired is the end of a group's period (do_sched_cfs_period_timer).
static int expired(void *map, u64 *id, struct group *g)
{
	u64 now = bpf_ktime_get_ns();
	s32 waiting;

	bpf_rcu_read_lock();
	waiting = scx_bpf_dsq_nr_queued(g->id);
	if (g->poked) {
		g->poked = 0;
	} else if (waiting <= 0 && (!g->now.quota || (g->idle && !g->standing))) {
		g->active = 0;
		if (g->now.quota && (g->standing || !g->idle))
			activate(g, now); // somebody ran meanwhile, and saw a timer that runs
		goto out;
	} else if (g->now.quota) {
		g->periods++;
		g->idle = 1;
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
	if (g->runtime > 0 || !g->now.quota)
		unthrottle(g, now);
	drain(g);
	if (g->active)
		bpf_timer_start(&g->timer, g->now.quota ? g->expires : now + 100000000, BPF_F_TIMER_ABS);
out:
	bpf_rcu_read_unlock();
	return 0;
}

// read takes what the kernel's files say, in microseconds; RUNTIME_INF is no quota.
static inline void read(struct bandwidth *to, u64 quota, u64 period, u64 burst)
{
	struct bandwidth b = {};

	if (quota != ~0ULL) {
		b.quota = quota * 1000;
		b.period = period * 1000;
		b.burst = burst * 1000;
	}
	*to = b;
}

SEC("struct_ops.s/cgroup_init")
s32 cgroup_init(u64 *ctx)
{
	struct cgroup *c = ARG(struct cgroup *, 0);
	struct scx_cgroup_init_args *args = ARG(struct scx_cgroup_init_args *, 1);
	struct scx_cgroup_init_args___bandwidth *b = (void *)args;
	struct cgroup_subsys_state *up = c->self.parent;
	struct group new = {}, *g;
	u64 id = c->kn->id;
	s32 err;

	new.id = id;
	new.weight = args->weight;
	new.share = ONE;
	for (int i = 0; i < LEVELS && up; i++) {
		new.parent = up->cgroup->kn->id;
		if (group_at(new.parent))
			break;
		up = up->parent;
	}
	if (!new.parent)
		top = id;
	if (HAS(scx_cgroup_init_args___bandwidth, bw_quota_us))
		read(&new.file, b->bw_quota_us, b->bw_period_us, b->bw_burst_us);
	new.now = new.file;
	new.runtime = new.snap = new.now.quota;
	err = bpf_map_update_elem(&groups, &id, &new, BPF_ANY);
	if (err)
		return err;
	g = group_at(id);
	if (!g)
		return -2;
	err = bpf_timer_init(&g->timer, &groups, CLOCK_MONOTONIC);
	if (err)
		return err;
	bpf_timer_set_callback(&g->timer, expired);
	add(generation, 1);
	return scx_bpf_create_dsq(id, -1);
}

SEC("struct_ops/cgroup_exit")
void cgroup_exit(u64 *ctx)
{
	u64 id = ARG(struct cgroup *, 0)->kn->id;
	struct group *g = group_at(id);

	if (g && g->standing)
		add(standing, -1);
	scx_bpf_destroy_dsq(id);
	bpf_map_delete_elem(&groups, &id);
	add(generation, 1);
}

SEC("struct_ops/cgroup_set_weight")
void cgroup_set_weight(u64 *ctx)
{
	struct group *g = group_at(ARG(struct cgroup *, 0)->kn->id);

	if (g)
		reweigh(g, ARG(u32, 1));
}

SEC("struct_ops/cgroup_set_bandwidth")
void cgroup_set_bandwidth(u64 *ctx)
{
	struct group *g = group_at(ARG(struct cgroup *, 0)->kn->id);
	u64 id = g ? g->id : 0;
	struct setting *s = bpf_map_lookup_elem(&settings, &id);

	if (!g)
		return;
	read(&g->file, ctx[2], ctx[1], ctx[3]);
	if (!s || !s->limited)
		limit(g, &g->file);
}

// A CPU that comes or goes does not end the scheduler, as it would without these two.
SEC("struct_ops/cpu_online")
void cpu_online(u64 *ctx)
{
	cpu[SLOT(ctx[0])].runs = NOTHING;
}

SEC("struct_ops/cpu_offline")
void cpu_offline(u64 *ctx)
{
	struct cpu *own = &cpu[SLOT(ctx[0])];

	if (!take(own))
		own->runs = NOTHING;
}

// apply is called by user space when it has changed the settings of a group.
struct applied {
	u64 id;
};

SEC("syscall")
int apply(struct applied *of)
{
	u64 id = of->id;
	struct setting *s = bpf_map_lookup_elem(&settings, &id);
	struct group *g = group_at(id);
	struct bandwidth *to;

	add(generation, 1);
	if (!g)
		return 2; // ENOENT
	to = s && s->limited ? &s->limit : &g->file;
	if (!same(to, &g->now))
		limit(g, to);
	return 0;
}

SEC("struct_ops.s/init")
s32 init(u64 *ctx)
{
	s32 err = scx_bpf_create_dsq(ONLINE, -1);

	return err ? err : scx_bpf_create_dsq(OFFLINE, -1);
}

SEC("struct_ops/exit")
void ended(u64 *ctx)
{
	struct scx_exit_info *info = ARG(struct scx_exit_info *, 0);

	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message), info->msg);
	exit_code = info->exit_code;
	exit_kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops plimsoll = {
	.select_cpu = (void *)select_cpu,
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.tick = (void *)tick,
	.runnable = (void *)runnable,
	.running = (void *)running,
	.stopping = (void *)stopping,
	.quiescent = (void *)quiescent,
	.cgroup_init = (void *)cgroup_init,
	.cgroup_exit = (void *)cgroup_exit,
	.cgroup_set_weight = (void *)cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)cgroup_set_bandwidth,
	.cpu_online = (void *)cpu_online,
	.cpu_offline = (void *)cpu_offline,
	.init = (void *)init,
	.exit = (void *)ended,
	.flags = SCX_OPS_ENQ_LAST,
	.timeout_ms = 20000,
	.name = "plimsoll",
};
