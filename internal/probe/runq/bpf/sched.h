/* SPDX-License-Identifier: GPL-2.0 */
/* sched.h: what is read of the scheduler beside kernel.h, and of which kernel. */
#ifndef PLIMSOLL_SCHED_H
#define PLIMSOLL_SCHED_H

#include "../../bpf/kernel.h"

enum { BPF_MAP_TYPE_ARRAY = 2 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum { PF_KTHREAD = 0x00200000 }; /* include/linux/sched.h */

static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;


#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___who {
	int pid;
	int exit_state;
	unsigned int flags;
	int on_cpu;
};
struct task_struct___bytes { /* 7.2 */
	u8 on_rq;
	u8 on_cpu;
};
struct rq___clock {
	u64 clock;
	u64 clock_task;
	u64 clock_pelt;
	unsigned long lost_idle_time;
};
struct rq___irq { /* CONFIG_IRQ_TIME_ACCOUNTING */
	u64 prev_irq_time;
};
struct rq___steal { /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
	u64 prev_steal_time;
};
struct cfs_rq___task { /* up to 5.18 */
	u64 throttled_clock_task;
	u64 throttled_clock_task_time;
};
struct cfs_rq___pelt { /* 5.19: 64eaf50731ac */
	u64 throttled_clock_pelt;
	u64 throttled_clock_pelt_time;
};
struct cfs_rq___self { /* 6.6: 677ea015f231 */
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
};
struct cfs_bandwidth___time {
	u64 throttled_time;
};
struct bpf_iter__task {
	void *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

static inline struct rq___clock *clock_of(struct cfs_rq *q)
{
	return (void *)q->rq;
}

/*
 * stood is how long a group's queue of one CPU has been kept from running by a limit, its own or one above it, up to
 * now: kernel/sched/fair.c, tg_throttle_down and tg_unthrottle_up. It is wall time where the kernel keeps that (6.6),
 * else a clock that stands still in interrupts and runs slower with the CPU.
 */
static inline u64 stood(struct cfs_rq *q)
{
	if (HAS(cfs_rq___self, throttled_clock_self_time)) {
		struct cfs_rq___self *s = (void *)q;
		u64 since = s->throttled_clock_self;

		return s->throttled_clock_self_time + (since ? clock_of(q)->clock - since : 0);
	}
	if (HAS(cfs_rq___pelt, throttled_clock_pelt_time)) {
		struct cfs_rq___pelt *s = (void *)q;
		u64 now = clock_of(q)->clock_pelt - clock_of(q)->lost_idle_time;

		return s->throttled_clock_pelt_time + (q->throttle_count > 0 ? now - s->throttled_clock_pelt : 0);
	}
	if (HAS(cfs_rq___task, throttled_clock_task_time)) {
		struct cfs_rq___task *s = (void *)q;

		return s->throttled_clock_task_time + (q->throttle_count > 0 ? clock_of(q)->clock_task - s->throttled_clock_task : 0);
	}
	return 0;
}

/*
 * queue_on is the queue of a task's group on another CPU, whose run queue is known (0: it is not). Up to 7.1 the group has an array of them. From
 * then on they are in per-CPU memory, as run queues are, and so as far from the run queue on each CPU.
 */
static inline struct cfs_rq *queue_on(struct task_struct *p, u64 cpu, u64 rq)
{
	struct cfs_rq *own = READ(&p->se, cfs_rq), *q = NULL; /* numbers to the verifier, which adds none to a pointer */

	if (HAS(task_group___arrays, se)) {
		struct cfs_rq **queues = ((struct task_group___arrays *)p->sched_task_group)->cfs_rq;

		if (queues) /* the root group's queues stand elsewhere, and it has no limit */
			bpf_probe_read_kernel(&q, sizeof(q), queues + (u32)cpu);
		return q;
	}
	return rq ? (struct cfs_rq *)(rq + ((u64)own - (u64)READ(own, rq))) : NULL;
}

/*
 * stood_on is that of a task's group on another CPU, which a waiting task is moved to. That queue is not kept from running
 * now: can_migrate_task moves nothing between throttled queues.
 */
static inline u64 stood_on(struct task_struct *p, u64 cpu, u64 rq)
{
	struct cfs_rq *q = queue_on(p, cpu, rq);

	if (!q)
		return ~0ull; /* more than it will be: none of the wait is a limit's */
	if (HAS(cfs_rq___self, throttled_clock_self_time))
		return READ((struct cfs_rq___self *)q, throttled_clock_self_time);
	if (HAS(cfs_rq___pelt, throttled_clock_pelt_time))
		return READ((struct cfs_rq___pelt *)q, throttled_clock_pelt_time);
	if (HAS(cfs_rq___task, throttled_clock_task_time))
		return READ((struct cfs_rq___task *)q, throttled_clock_task_time);
	return 0;
}

/* one_by_one says whether tasks are throttled one by one, on their way to user space (6.18), and not with their queue. */
static inline bool one_by_one(void)
{
	return HAS(task_struct___throttled, throttled);
}

/* taken_off says whether a task is throttled by itself. */
static inline bool taken_off(struct task_struct *p)
{
	return one_by_one() && ((struct task_struct___throttled *)p)->throttled;
}

static inline bool queued(struct task_struct *p)
{
	return FIELD(p, on_rq, FIELD_SIZE) == 1 ? ((struct task_struct___bytes *)p)->on_rq : p->on_rq;
}

static inline bool on_cpu(struct task_struct *p)
{
	struct task_struct___who *who = (void *)p;

	return FIELD(who, on_cpu, FIELD_SIZE) == 1 ? ((struct task_struct___bytes *)p)->on_cpu : who->on_cpu;
}

/* runnable says whether a task that does not run wants to. One that is throttled by itself is off its queue. */
static inline bool runnable(struct task_struct *p)
{
	struct sched_entity___delayed *se = (void *)&p->se;

	if (taken_off(p))
		return true;
	return queued(p) && !(HAS(sched_entity___delayed, sched_delayed) && se->sched_delayed);
}

/* irq_time and steal_time are what a CPU has lost so far, as the kernel's own clock of tasks takes it off
 * (kernel/sched/core.c, update_rq_clock_task). */
static inline u64 irq_time(struct cfs_rq *q)
{
	return HAS(rq___irq, prev_irq_time) ? ((struct rq___irq *)q->rq)->prev_irq_time : 0;
}

static inline u64 steal_time(struct cfs_rq *q)
{
	return HAS(rq___steal, prev_steal_time) ? ((struct rq___steal *)q->rq)->prev_steal_time : 0;
}

#endif
