// SPDX-License-Identifier: GPL-2.0
// scheduler.bpf.c: online tasks before offline ones, on the whole machine.
//
// Tasks that find no idle CPU wait in one of two queues for all CPUs, online or offline, in the order of their group's
// virtual time: its runtime divided by its share. A CPU takes offline tasks only when no waiting online task may run
// there, and preempts them as soon as one may. Three things bound that: a floor, so that the kernel's watchdog does not
// end the scheduler for a starved offline task; limits (bandwidth.h), which stop tasks of both classes; and with
// `expel`, no offline task runs on a CPU while a sibling thread of its core runs an online task of a group that expels.
//
// A group is offline if user space says so of the group or of one above (group.h). All else is online, including the
// system's own groups and the kernel's threads.
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#include "group.h"
#include "bandwidth.h"
#include "queue.h"
#include "cpu.h"
#include "floor.h"
#include "period.h"
#include "tree.h"

u32 exit_kind;
s64 exit_code;
char exit_reason[128], exit_message[256];

SEC("struct_ops/select_cpu")
s32 select_cpu(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	s32 prev = ARG(s32, 1), c;
	struct group *g = group_of(p);
	bool idle = false;

	if (!g || throttled_by(p, g) || (g->offline && expel))
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
	by = throttled_by(p, g);
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
	if (cpu[SLOT(c)].runs >= RUNS_ONLINE && before(g->vtime + slice_online, cpu[SLOT(c)].vtime))
		scx_bpf_kick_cpu(c, SCX_KICK_PREEMPT);
}

// stay lets the running task continue for another slice. Without a switch no other program updates its group here.
static inline void stay(struct task_struct *p, struct group *g, struct cpu *own)
{
	set_slice(p, slice(p, g));
	own->ordered = 0;
	if (!g->offline) {
		take(own); // it may have been offline until now
		own->runs = online(g);
	} else if (own->runs != RUNS_OFFLINE) {
		offer(own);
	}
}

SEC("struct_ops/dispatch")
void dispatch(u64 *ctx)
{
	s32 c = ARG(s32, 0);
	struct task_struct *prev = ARG(struct task_struct *, 1);
	struct cpu *own = &cpu[SLOT(c)];
	struct group *g = prev && prev->scx.flags & SCX_TASK_QUEUED ? group_of(prev) : NULL;

	if (g && throttled_by(prev, g))
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

// account charges the task that runs on a CPU up to now.
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
		with = beside(c, RUNS_ONLINE);
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

// The kernel may call running, stopping and tick on another CPU than the task's: where another task changes the
// affinity, the nice value or the group of p (kernel/sched/core.c, put_prev_task and set_next_task; sched_tick_remote).
SEC("struct_ops/running")
void running(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);
	struct group *g = group_of(p);
	s32 c = scx_bpf_task_cpu(p);
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
	if (throttled_by(p, g))
		set_slice(p, 0); // until the next tick: it slipped by while it was being throttled
	if (g->offline) {
		if (floor) {
			begin_floor(own);
			set_slice(p, floor_slice);
		} else {
			own->owed = 0;
			offer(own);
		}
		return;
	}
	own->runs = online(g);
	if (own->runs != RUNS_EXPELLING)
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
	s32 c = scx_bpf_task_cpu(p);
	struct cpu *own = &cpu[SLOT(c)];
	u32 other = SLOT(c), ran = own->runs;

	if (!g)
		return;
	account(g, own, c, bpf_ktime_get_ns());
	if (!take(own))
		own->runs = NOTHING;
	if (ran != RUNS_EXPELLING || scx_bpf_dsq_nr_queued(OFFLINE) <= 0)
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
	s32 c = scx_bpf_task_cpu(p);
	struct cpu *own = &cpu[SLOT(c)];
	u64 now = bpf_ktime_get_ns();

	if (!g)
		return;
	account(g, own, c, now);
	if (throttled_by(p, g)) {
		set_slice(p, 0);
		return;
	}
	if (own->runs == RUNS_EXPELLING)
		relieve(c, now);
	if (!g->offline || own->runs == RUNS_FLOOR)
		return;
	if (expelled(c)) {
		if (take(own))
			add(own->expels, 1);
		set_slice(p, 0);
	} else if (!stays(c, ONLINE, ~0ULL >> 2)) {
		evict(c);
		set_slice(p, 0);
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
