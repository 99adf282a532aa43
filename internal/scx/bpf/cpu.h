// SPDX-License-Identifier: GPL-2.0
// cpu.h: what each CPU runs, which CPUs an online task may preempt, and where an idle CPU is found.

#define CPUS 1024
#define SLOT(cpu) ((u32)(cpu) & (CPUS - 1))

const volatile u32 expel = 0;
const volatile u16 sibling[CPUS]; // the next thread of the same core, around; itself if it has none

enum running { NOTHING, RUNS_OFFLINE, RUNS_FLOOR, RUNS_ONLINE, RUNS_EXPELLING };

struct cpu {
	u64 began;	 // when what runs was last charged
	u64 last;	 // when an offline task last ran
	u64 vtime;	 // of the group of what runs, when it began
	u64 since;	 // when what runs began to
	u64 looked;	 // when it was last idle, and nobody had waited for it too long
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
	u32 late;    // when the floor was last given, one that may run here had waited for most of the watchdog's time
};

struct cpu cpu[CPUS];
u32 offline_cpus; // CPUs that run offline tasks and may be taken away

// beside is since when an online task has run on a sibling, or, where only some expel, a task that expels; 0: none.
static inline u64 beside(s32 c, enum running least)
{
	u32 other = SLOT(c);

	for (int i = 0; i < 7; i++) {
		other = SLOT(sibling[other]);
		if (other == SLOT(c))
			return 0;
		if (cpu[other].runs >= least)
			return cpu[other].since;
	}
	return 0;
}

// expelled says whether no offline task may run on a CPU, except by the floor.
static inline bool expelled(s32 c)
{
	return expel && beside(c, RUNS_EXPELLING);
}

// online is how a CPU runs that runs a task of an online group.
static inline enum running online(struct group *g)
{
	return expel && g->expels ? RUNS_EXPELLING : RUNS_ONLINE;
}

// offer adds a CPU that runs an offline task to the CPUs that may be preempted.
static inline void offer(struct cpu *own)
{
	own->runs = RUNS_OFFLINE;
	add(offline_cpus, 1);
}

// take removes a CPU from them. Only one caller gets it.
static inline bool take(struct cpu *own)
{
	if (own->runs != RUNS_OFFLINE || __sync_val_compare_and_swap(&own->runs, RUNS_OFFLINE, NOTHING) != RUNS_OFFLINE)
		return false;
	add(offline_cpus, -1);
	return true;
}

// evict preempts the offline task of a CPU, for an online one.
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
