// SPDX-License-Identifier: GPL-2.0
// queue.h: the two queues for all CPUs: the place of a group in its queue, and which waiting tasks may run or are throttled.

#define ONLINE ((1ULL << 62) | 1)
#define OFFLINE ((1ULL << 62) | 2)
#define LAG 50000000	  // of CPU time that a group may be behind its share
#define LEAD (PATIENCE * cpus) // of virtual time that it may be ahead: busy CPUs come up to that in PATIENCE

const volatile u64 slice_offline = 3000000;
u64 clock[2]; // the virtual time, online and offline: the latest place in the queue of a task that began in its turn

static inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

// turn is the place of a group in its queue: never so far behind that it would keep the others out for long, nor so far
// ahead that it would be kept out.
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

// set_slice says how long a task that runs goes on. Kernels that have a function for it are to refuse the direct write one day.
static inline void set_slice(struct task_struct *p, u64 ns)
{
	if (scx_bpf_task_set_slice)
		scx_bpf_task_set_slice(p, ns);
	else
		p->scx.slice = ns;
}

// throttled_by is the group whose throttle keeps a task from running; 0: none.
static inline u64 throttled_by(struct task_struct *p, struct group *g)
{
	if (!standing || p->flags & PF_KTHREAD)
		return 0;
	return stopped(g->id);
}

// overdue says whether a task that has waited since then, in jiffies, must run once, also below a throttle: the kernel's
// watchdog ends the scheduler for a task that has waited for timeout_ns (kernel/sched/ext.c, check_rq_for_timeouts).
static inline bool overdue(u64 since)
{
	return bpf_jiffies64() - since > PATIENCE / tick_ns;
}

static inline bool aged(struct task_struct *p)
{
	return overdue(p->scx.runnable_at);
}

// may says whether a task that waits may run on a CPU.
static inline bool may(struct task_struct *p, s32 c)
{
	return bpf_cpumask_test_cpu(c, p->cpus_ptr) && !(p->migration_disabled && scx_bpf_task_cpu(p) != c);
}

// pinned is a task that cannot go elsewhere, as far as the kernel's own migrations are concerned.
static inline bool pinned(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || p->migration_disabled;
}

// sweep removes tasks of throttled groups from a queue: it checks the first ones, and later calls reach the others.
noinline int sweep(u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!standing)
		return 0;
	if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			struct group *g = group_of(p);
			u64 by = g && !aged(p) ? throttled_by(p, g) : 0;

			if (!by)
				break;
			scx_bpf_dsq_move_set_vtime(&it, p->scx.runnable_at);
			scx_bpf_dsq_move_vtime(&it, p, by, 0);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

// stays says whether the running task continues: no waiting task may run here and has an earlier turn.
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
